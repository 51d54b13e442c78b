package main

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
)

// A control group has no more than those above it.
func TestGroupBytes(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":      {nil, math.MaxInt64},
		"container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"unlimited": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, math.MaxInt64},
		"above": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "700\n",
		}, 700},
		"slowed down": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "900\n", "sys/fs/cgroup/a/b/memory.high": "max\n",
			"sys/fs/cgroup/a/memory.high": "600\n",
		}, 600},
		"version 1": {map[string]string{"proc/self/cgroup": "4:memory:/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "500\n"}, 500},
		"version 1, no container": {map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/\n4:hugetlb,memory:/a/b\n0::/c\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "300\n",
		}, 300},
		"no group of memory": {map[string]string{"proc/self/cgroup": "4:cpu:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "500\n"}, math.MaxInt64},
	} {
		root := tree(t, c.files)
		if got := groupBytes(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Where nobody says what batches may take, a small container is not asked for more than it has.
func TestStandardMemory(t *testing.T) {
	const meminfo = "proc/meminfo"
	machine := func(kib string) string { return "MemTotal: " + kib + " kB\n" }
	for name, c := range map[string]struct {
		files map[string]string
		want  bytesize.Size
	}{
		"unknown":       {nil, 4 << 30},
		"large machine": {map[string]string{meminfo: machine("527433728")}, 4 << 30},
		"small machine": {map[string]string{meminfo: machine("2097152")}, 1 << 30},
		"container": {map[string]string{
			meminfo: machine("527433728"), "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "3221225472\n",
		}, 3 << 29},
		"container, version 1": {map[string]string{
			meminfo: machine("527433728"), "proc/self/cgroup": "9:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
		}, 1 << 29},
		"next to nothing": {map[string]string{meminfo: machine("100")}, leastMemory},
	} {
		if got := standardMemory(tree(t, c.files)); got != c.want {
			t.Errorf("%s: %s, want %s", name, &got, &c.want)
		}
	}
}

// tree is a folder with files.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWarnOfMemory(t *testing.T) {
	log := newBook()
	logger := slog.New(slog.NewTextHandler(log, nil))
	root := tree(t, map[string]string{"proc/meminfo": "MemFree:  1 kB\nMemTotal:    4194304 kB\n"})
	warnOfMemory(logger, 2<<30, 1<<30, 1<<30, root)
	warnOfMemory(logger, 1<<40, 0, 0, t.TempDir())
	if s := log.String(); s != "" {
		t.Errorf("what is there, or may be: %s", s)
	}
	warnOfMemory(logger, 4<<30, 0, 1<<20, root)
	if s := log.String(); !strings.Contains(s, "--max-memory") || !strings.Contains(s, "there=4GiB") || strings.Count(s, "\n") != 1 {
		t.Errorf("more than is there: %q", s)
	}
	if machineBytes("/") < 1<<20 {
		t.Error("this machine has no memory")
	}
}
