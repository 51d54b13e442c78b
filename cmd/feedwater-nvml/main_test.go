package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// The real program against stand-ins for NVIDIA's library, both built here; "" where there is no C compiler.
var program, standins string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	name, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return 0, err
	}
	cc := strings.Fields(string(name))
	if _, err := exec.LookPath(cc[0]); err != nil {
		return m.Run(), nil
	}
	dir, err := os.MkdirTemp("", "feedwater-nvml")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for name, define := range map[string]string{"new": "-DNEW", "old": "-DOLD", "other": "-DOTHER"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return 0, err
		}
		build := exec.Command(cc[0], append(cc[1:len(cc):len(cc)], "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", define, "-Wl,-soname,libnvidia-ml.so.1",
			"-o", filepath.Join(dir, name, "libnvidia-ml.so.1"), "testdata/standin/nvml.c")...)
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("stand-in: %w\n%s", err, out)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "broken"), 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(dir, "broken", "libnvidia-ml.so.1"), []byte("no library"), 0o644); err != nil {
		return 0, err
	}
	args := append([]string{"build", "-o", filepath.Join(dir, "feedwater-nvml"), "-ldflags=-extldflags=-Wl,-z,lazy"}, raceFlags...)
	build := exec.Command("go", append(args, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("program: %w\n%s", err, out)
	}
	standins, program = dir, filepath.Join(dir, "feedwater-nvml")
	return m.Run(), nil
}

// command runs the program with a stand-in (new, old, other or broken) that plays something.
func command(t *testing.T, standin, plays, trace string, args ...string) *exec.Cmd {
	t.Helper()
	if program == "" {
		t.Skip("no C compiler: the program cannot be built here")
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(standins, standin), "STANDIN="+plays, "GORACE=atexit_sleep_ms=10")
	if trace != "" {
		c.Env = append(c.Env, "STANDIN_TRACE="+filepath.Join("testdata/traces", trace))
	}
	return c
}

// once is the line that the program prints with --once, and how it ended.
func once(t *testing.T, standin, plays, trace string, args ...string) (gpu.Line, int, string) {
	t.Helper()
	c := command(t, standin, plays, trace, append([]string{"--once", "--interval", "150ms"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if bytes.Count(out, []byte("\n")) != 1 {
		t.Fatalf("%d lines: %s\n%s", bytes.Count(out, []byte("\n")), out, &stderr)
	}
	return parse(t, out), c.ProcessState.ExitCode(), stderr.String()
}

// parse reads a line and checks what holds for every one: a list of GPUs, a reason if it is empty, and for each value either the value
// or why there is none.
func parse(t *testing.T, text []byte) gpu.Line {
	t.Helper()
	var line gpu.Line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if line.GPUs == nil || (len(line.GPUs) == 0) != (line.Reason != "") || line.Time.IsZero() {
		t.Fatalf("no list of GPUs, or no reason: %s", text)
	}
	var raw struct{ GPUs []map[string]any }
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	for _, g := range raw.GPUs {
		unknown, _ := g["unknown"].(map[string]any)
		for name, v := range g {
			if reason, _ := unknown[name].(string); name != "unknown" && (v == nil) != (reason != "") {
				t.Errorf("%s is %v and the reason %q: %s", name, v, reason, text)
			}
		}
		for name := range unknown {
			if _, ok := g[name]; !ok {
				t.Errorf("a reason for %s, which is no value: %s", name, text)
			}
		}
	}
	return line
}

func near(v *float64, want float64) bool { return v != nil && math.Abs(*v-want) < 1e-5 }

func TestHopper(t *testing.T) {
	line, code, _ := once(t, "new", "hopper", "steady.txt")
	if code != 0 || len(line.GPUs) != 1 || line.Driver != "580.65.06" || line.HostPIDs == nil || line.IntervalSeconds < 0.1 {
		t.Fatalf("exit %d: %+v", code, line)
	}
	g := line.GPUs[0]
	// Of the second look four samples are new: 100, 0, 100, 0 %.
	if !near(g.Utilisation, 0.5) || !near(g.UtilisationSeconds, 4.0/6) {
		t.Errorf("utilisation %v over %v s", *g.Utilisation, *g.UtilisationSeconds)
	}
	if !near(g.SMActivity, 0.625) || !near(g.EngineActivity, 0.9) || !near(g.PCIeReceived, 512<<20) || !near(g.PCIeSent, 2<<20) {
		t.Errorf("counters: %v %v %v %v", *g.SMActivity, *g.EngineActivity, *g.PCIeReceived, *g.PCIeSent)
	}
	if *g.UUID != "GPU-0" || *g.Name != "Stand-in" || *g.MIG || g.Lost || *g.MemoryUsedBytes != 9<<30 || *g.MemoryTotalBytes != 80<<30 {
		t.Errorf("%+v", g)
	}
	if *g.SMClockMHz != 1410 || *g.SMClockMaxMHz != 1980 || *g.MemoryClockMHz != 1593 ||
		!slices.Equal(g.ThrottleReasons, []string{"sw_power_cap", "hw_thermal_slowdown"}) {
		t.Errorf("clocks %+v", g)
	}
	if len(g.Processes) != 1 || g.Processes[0].PID != 4242 || *g.Processes[0].MemoryUsedBytes != 6<<30 || g.Processes[0].Kind != "compute" {
		t.Errorf("processes %+v", g.Processes)
	}
	if len(g.Unknown) != 0 {
		t.Errorf("unknown: %v", g.Unknown)
	}
}

func TestUtilisationFromTraces(t *testing.T) {
	for trace, want := range map[string]float64{"uneven.txt": 0.25, "clock-set-back.txt": 0.7} {
		line, _, _ := once(t, "new", "ampere", trace)
		if g := line.GPUs[0]; !near(g.Utilisation, want) {
			t.Errorf("%s: %+v, want %v", trace, g, want)
		}
	}
	for _, trace := range []string{"stuck.txt", ""} {
		line, _, _ := once(t, "new", "ampere", trace)
		if g := line.GPUs[0]; g.Utilisation != nil || !strings.Contains(g.Unknown["utilisation"], "nothing new") {
			t.Errorf("trace %q: %+v", trace, g)
		}
	}
}

// Some drivers take no samples while a GPU is idle.
func TestIdleWithoutSamples(t *testing.T) {
	for _, trace := range []string{"stuck.txt", ""} {
		line, _, _ := once(t, "new", "idle", trace)
		if g := line.GPUs[0]; !near(g.Utilisation, 0) || g.UtilisationSeconds != nil {
			t.Errorf("trace %q: %+v", trace, g)
		}
	}
	line, _, _ := once(t, "new", "idle", "steady.txt") // samples say more than the value of now
	if g := line.GPUs[0]; !near(g.Utilisation, 0.5) {
		t.Errorf("%+v", g)
	}
}

func TestBeforeHopper(t *testing.T) {
	line, _, _ := once(t, "new", "ampere", "steady.txt")
	g := line.GPUs[0]
	if g.SMActivity != nil || !strings.Contains(g.Unknown["sm_activity"], "Hopper") || *g.MIG {
		t.Errorf("%+v", g)
	}
	if !near(g.PCIeReceived, 1.2e9) || !near(g.PCIeSent, 3e6) || !near(g.Utilisation, 0.5) {
		t.Errorf("%+v", g)
	}
}

// An old driver lacks functions; calling one would end the program.
func TestMissingFunctions(t *testing.T) {
	line, code, _ := once(t, "old", "ampere", "steady.txt")
	if code != 0 || len(line.GPUs) != 1 {
		t.Fatalf("exit %d: %+v", code, line)
	}
	g := line.GPUs[0]
	if want := "not supported: this driver has no nvmlDeviceGetSamples"; g.Unknown["utilisation"] != want {
		t.Errorf("%q, want %q", g.Unknown["utilisation"], want)
	}
	if *g.MemoryUsedBytes != 10<<30 || len(g.Processes) != 1 || len(g.ThrottleReasons) != 2 || *g.MIG {
		t.Errorf("older functions were not used: %+v", g)
	}
}

func TestTwoPrograms(t *testing.T) {
	line, _, _ := once(t, "new", "two-programs", "steady.txt")
	p := line.GPUs[0].Processes
	if len(p) != 2 || p[0].PID != 4242 || p[1].PID != 4343 || p[1].MemoryUsedBytes != nil {
		t.Errorf("%+v", p)
	}
}

func TestMIG(t *testing.T) {
	line, _, _ := once(t, "new", "mig", "steady.txt")
	if len(line.GPUs) != 3 {
		t.Fatalf("%+v", line.GPUs)
	}
	whole := line.GPUs[0]
	if !*whole.MIG || whole.Parent != "" || whole.Unknown["utilisation"] != "not supported" || !near(whole.SMActivity, 0.625) {
		t.Errorf("%+v", whole)
	}
	for i, want := range []struct {
		index int
		uuid  string
		sm    float64
	}{{0, "MIG-3", 0.03}, {2, "MIG-5", 0.05}} {
		g := line.GPUs[i+1]
		if g.Index != want.index || *g.UUID != want.uuid || g.Parent != "GPU-0" || !near(g.SMActivity, want.sm) || len(g.Processes) != 1 {
			t.Errorf("%+v", g)
		}
		if g.Utilisation != nil || g.PCIeReceived != nil || g.ThrottleReasons != nil {
			t.Errorf("what belongs to the whole GPU: %+v", g)
		}
	}
}

func TestLostGPU(t *testing.T) {
	line, code, _ := once(t, "new", "lost", "steady.txt")
	if code != 0 || len(line.GPUs) != 2 {
		t.Fatalf("exit %d: %+v", code, line)
	}
	lost, other := line.GPUs[0], line.GPUs[1]
	if !lost.Lost || lost.UUID == nil || lost.MemoryUsedBytes != nil || lost.Unknown["processes"] != gpu.ErrLost.Error() {
		t.Errorf("lost: %+v", lost)
	}
	if other.Lost || !near(other.Utilisation, 0.5) || !near(other.SMActivity, 0.625) {
		t.Errorf("the other: %+v", other)
	}
}

func TestOneGPUNotPermitted(t *testing.T) {
	line, _, _ := once(t, "new", "gpu-no-permission", "steady.txt")
	if g := line.GPUs[0]; g.UUID != nil || g.Unknown["uuid"] != "no permission" || g.Unknown["utilisation"] != "no permission" {
		t.Errorf("%+v", g)
	}
	if g := line.GPUs[1]; !near(g.Utilisation, 0.5) {
		t.Errorf("%+v", g)
	}
}

// A GPU of which nothing can be read is still a GPU.
func TestNothingSupported(t *testing.T) {
	line, code, _ := once(t, "new", "unsupported", "steady.txt")
	if g := line.GPUs[0]; code != 0 || g.MemoryTotalBytes != nil || g.Unknown["memory_total_bytes"] != "not supported" {
		t.Errorf("exit %d: %+v", code, g)
	}
}

func TestNoGPUs(t *testing.T) {
	for _, c := range []struct{ standin, plays, reason string }{
		{"broken", "", "no NVIDIA driver: "},
		{"other", "", "it has no nvmlInit"},
		{"new", "not-loaded", "kernel module is not loaded"},
		{"new", "no-permission", "does not start: no permission"},
		{"new", "mismatch", "different versions"},
		{"new", "no-gpu", "shows no GPU"},
	} {
		line, code, stderr := once(t, c.standin, c.plays, "")
		if code != 0 || len(line.GPUs) != 0 || !strings.Contains(line.Reason, c.reason) || stderr != "" {
			t.Errorf("%+v: exit %d, reason %q, %s", c, code, line.Reason, stderr)
		}
	}
}

// Nothing will change, so it does not wait either.
func TestEndsWithoutGPUs(t *testing.T) {
	out, err := command(t, "new", "not-loaded", "", "--interval", "1h").Output()
	if line := parse(t, out); err != nil || len(line.GPUs) != 0 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestHangingDriver(t *testing.T) {
	for plays, where := range map[string]string{"hang": "nvmlDeviceGetSamples on GPU 1", "hang-init": "nvmlInit"} {
		line, code, stderr := once(t, "new", plays, "steady.txt", "--timeout", "1s")
		if want := "the driver has not answered for 1s: " + where; code != 1 || line.Reason != want || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, %s", plays, code, line.Reason, stderr)
		}
	}
}

// What the library prints does not come between the lines.
func TestNoisyLibrary(t *testing.T) {
	line, _, stderr := once(t, "new", "noisy", "steady.txt")
	if len(line.GPUs) != 1 || !strings.Contains(stderr, "WARNING") {
		t.Errorf("%+v %s", line, stderr)
	}
}

// launch starts the program and waits for its first lines.
func launch(t *testing.T, c *exec.Cmd, lines int) *bufio.Reader {
	t.Helper()
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(pipe)
	for range lines {
		text, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		parse(t, text)
	}
	return r
}

// Samples of hardware counters are given back: the stand-in has no more than 64.
func TestManyLinesAndSignals(t *testing.T) {
	for s, lines := range map[syscall.Signal]int{syscall.SIGTERM: 30, syscall.SIGINT: 1} {
		c := command(t, "new", "mig", "steady.txt", "--interval", "100ms")
		r := launch(t, c, lines)
		text, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line := parse(t, text); line.GPUs[1].SMActivity == nil {
			t.Errorf("after %d lines: %s", lines, text)
		}
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestSignalWhileTheDriverHangs(t *testing.T) {
	c := command(t, "new", "hang", "steady.txt", "--timeout", "1h")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	launch(t, c, 0)
	if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil { // "stand-in hangs"
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestEndsWhenNobodyReads(t *testing.T) {
	c := command(t, "new", "hopper", "steady.txt", "--interval", "1h") // no line to notice it by
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = pipe.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

func TestEndsWithItsParent(t *testing.T) {
	helper := command(t, "new", "hopper", "steady.txt")
	shell := exec.CommandContext(t.Context(), "sh", "-c", `"$0" --interval 100ms & read -r _`, program)
	shell.Env = helper.Env
	input, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := launch(t, shell, 2)
	_ = input.Close() // the shell ends; the program alone holds the pipe
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	_ = shell.Wait()
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"--interval", "50ms"}, {"--timeout", "0s"}, {"--what"}, {"argument"}} {
		if code := start(args, io.Discard); code != exitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
