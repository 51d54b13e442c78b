package gpus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// reader is a stand-in for feedwater-nvml: a shell script.
func reader(t *testing.T, script string) *Readings {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "nvml")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FEEDWATER_NVML", program)
	g := New(slog.New(slog.DiscardHandler), func() []string { return []string{folder} })
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.RunWhileWanted(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	return g
}

const nvmlText = `{"gpus": [{"index": 3, "uuid": "GPU-1", "name": "H200", "lost": false, "utilisation": 0.9, "sm_activity": 0.4, "memory_used_bytes": 5,
 "memory_total_bytes": 9, "throttle_reasons": ["gpu_idle", "hw_slowdown"], "processes": [{"pid": 7, "memory_used_bytes": null}], "unknown": {}},
 {"index": 4, "uuid": null, "name": null, "lost": false, "utilisation": null, "sm_activity": null, "unknown": {"utilisation": "no permission"}, "processes": null}]}`

func TestGPUsAreRead(t *testing.T) {
	g := reader(t, fmt.Sprintf("echo '%s' | tr -d '\\n'; echo; sleep 60", nvmlText))
	for deadline := time.Now().Add(time.Minute); len(g.LatestStatus()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no GPUs")
		}
	}
	all := g.LatestStatus()
	if a := all[0]; len(all) != 2 || a.Index != 3 || a.Name != "H200" || a.GetBusy() != 0.4 || a.GetMemoryTotalBytes() != 9 || len(a.Throttles) != 1 || len(a.Processes) != 1 || a.Processes[0].MemoryBytes != nil {
		t.Errorf("%v", all)
	}
	if b := all[1]; b.Busy != nil || b.Unknown != "no permission" || b.MemoryUsedBytes != nil {
		t.Errorf("what is unknown is told as %v", b)
	}
	if unlock, ok := g.lockReading(); ok {
		unlock()
		t.Error("a second reader may run beside the first")
	}
}

// A program that fails, says nonsense or is not there makes GPUs unknown and nothing else.
func TestGPUsUnknown(t *testing.T) {
	for _, script := range []string{"exit 1", "echo nonsense; echo '{\"gpus\": [], \"reason\": \"no driver\"}'", "kill -9 $$"} {
		g := reader(t, script)
		g.LatestStatus()
		g.readProgram(t.Context(), os.Getenv("FEEDWATER_NVML"))
		if all := g.LatestStatus(); len(all) != 0 {
			t.Errorf("%s: %v", script, all)
		}
	}
	g := New(slog.New(slog.DiscardHandler), func() []string { return []string{t.TempDir()} })
	g.readProgram(t.Context(), "/nowhere")
	if all := g.LatestStatus(); all != nil {
		t.Errorf("%v", all)
	}
}
