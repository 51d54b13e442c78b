package membership

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nodes")
	answers := watch(t, &file{"file:" + path, path})
	next(t, answers, "cannot tell: stat "+path+": no such file or directory")
	write(t, path, "# ours\ncpu-2:7070 cpu-1:7070\r\n\nunix:/run/node.sock, cpu-1:7070 # twice\n")
	until(t, answers, "cpu-1:7070 cpu-2:7070 unix:/run/node.sock")
	write(t, path+".new", "cpu-3:7070")
	rename(t, path+".new", path)
	until(t, answers, "cpu-3:7070")
	write(t, path, "cpu-3:7070\ncpu-4:70")
	until(t, answers, "cpu-3:7070 cpu-4:70")
	write(t, path, "cpu-3:7070\ncpu-4\n")
	until(t, answers, `cpu-3:7070 but `+path+` line 2: "cpu-4" is no address of a node; write `+Spellings)
	write(t, path, "")
	until(t, answers, "")
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	answers := watch(t, &file{"file:" + dir, dir})
	next(t, answers, "")
	write(t, filepath.Join(dir, ".hidden"), "a:1")
	write(t, filepath.Join(dir, "task-0.tmp"), "b:1")
	write(t, filepath.Join(dir, "task-0~"), "c:1")
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "task-1"), "cpu-1:7070\n")
	until(t, answers, "cpu-1:7070")
	write(t, filepath.Join(dir, "task-0.tmp"), "cpu-0:7070\n")
	rename(t, filepath.Join(dir, "task-0.tmp"), filepath.Join(dir, "task-0"))
	until(t, answers, "cpu-0:7070 cpu-1:7070")
	if err := os.Remove(filepath.Join(dir, "task-1")); err != nil {
		t.Fatal(err)
	}
	until(t, answers, "cpu-0:7070")
}

// A volume of a ConfigMap: files are links into ..data, a link that is replaced.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	put := func(version, text string) {
		t.Helper()
		place := filepath.Join(dir, version)
		if err := os.Mkdir(place, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(place, "nodes"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..next")); err != nil {
			t.Fatal(err)
		}
		rename(t, filepath.Join(dir, "..next"), filepath.Join(dir, "..data"))
	}
	put("..1", "cpu-1:7070")
	if err := os.Symlink(filepath.Join("..data", "nodes"), filepath.Join(dir, "nodes")); err != nil {
		t.Fatal(err)
	}
	file1, folder := watch(t, &file{"file", filepath.Join(dir, "nodes")}), watch(t, &file{"file", dir})
	next(t, file1, "cpu-1:7070")
	next(t, folder, "cpu-1:7070")
	put("..2", "cpu-2:7070")
	until(t, file1, "cpu-2:7070")
	until(t, folder, "cpu-2:7070")
}

// Where nobody tells of changes, as on NFS, they are found all the same, and not by reading all the time.
func TestFileWithoutNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &changeWatcher{}
		began := time.Now()
		for range 100 {
			n.wait(t.Context())
		}
		if took := time.Since(began); took < 160*time.Second || took > 240*time.Second {
			t.Errorf("100 reads in %s", took)
		}
	})
}

// A file of any length, or of one line without end, takes little memory.
func TestFileOfAnyLength(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes")
	write(t, path, strings.Repeat("x", 10*mostInFile))
	l := readListing(path)
	if len(l.nodes) > 0 || l.err == nil {
		t.Errorf("%d nodes, %v", len(l.nodes), l.err)
	}
}
