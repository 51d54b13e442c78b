//go:build !portable

package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestCacheThatDoesNotAnswer: a folder for lists that hangs is asked for nothing but by CallFolder, and the list is kept where lists are kept that
// have no such folder.
func TestCacheThatDoesNotAnswer(t *testing.T) {
	hangs := errors.New("it does not answer")
	var told []*KeepError
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), nowhere(t, &told)
	o.sharedMemory, o.CacheDir = t.TempDir(), t.TempDir()
	treetest.Must(t, os.Chmod(o.sharedMemory, 0o700))
	open(t, root, o) // the list of before lies there
	list := manifestFile(t, o.CacheDir)
	before, err := os.Stat(list)
	treetest.Must(t, err)
	o.CallFolder = func(context.Context, string, func() (any, error), func(any)) (any, error) { return nil, hangs }
	if s := open(t, root, o); s.Cached() || len(told) != 1 || told[0].Folder == "" || !errors.Is(told[0], hangs) {
		t.Errorf("cached %v, told %v", s.Cached(), told)
	}
	s := open(t, root, o)
	if !s.Cached() {
		t.Error("the list was not kept in shared memory")
	}
	treetest.Must(t, os.WriteFile(filepath.Join(root, "a", "x.jpg"), []byte("in place"), 0o600))
	if _, err := s.Read(t.Context(), 0, nil); err == nil {
		t.Error("a file that was written in place was read")
	}
	if after, err := os.Stat(list); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the folder that does not answer was changed: %v", err)
	}
	if names, err := filepath.Glob(filepath.Join(o.CacheDir, "*")); err != nil || len(names) != 1 {
		t.Errorf("the folder that does not answer has %v, %v", names, err)
	}
}

// TestCallsOnTheCache: what CallFolder gives up is put in order when it comes back after all: no lock is left, no memory.
func TestCallsOnTheCache(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	var ops []string
	o.CallFolder = func(_ context.Context, op string, call func() (any, error), drop func(any)) (any, error) {
		ops = append(ops, op)
		v, err := call()
		if err == nil && (op == "lock the list" || op == "keep the list") { // it comes too late
			drop(v)
			return nil, errors.New("given up")
		}
		return v, err
	}
	s := open(t, root, o)
	if s.Len() != 1 {
		t.Errorf("%d samples", s.Len())
	}
	if left, err := filepath.Glob(filepath.Join(o.CacheDir, "*.lock")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if again := open(t, root, o); !again.Cached() || again.Fingerprint() != s.Fingerprint() {
		t.Error("the list that was written late is not found")
	}
	for _, op := range []string{"look for the list", "make the folder of lists", "note the use of the list"} {
		if !slices.Contains(ops, op) {
			t.Errorf("no call to %s: %v", op, ops)
		}
	}
}

// TestUnlockOnAFolderThatIsSick: where the folder is known to hang as the scan ends, and is not even asked, the lock ends all the same.
func TestUnlockOnAFolderThatIsSick(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	o.CallFolder = func(_ context.Context, op string, call func() (any, error), _ func(any)) (any, error) {
		if op == "unlock the list" {
			return nil, errors.New("the folder is sick")
		}
		return call()
	}
	open(t, root, o)
	for left := []string{""}; len(left) > 0; runtime.Gosched() {
		var err error
		left, err = filepath.Glob(filepath.Join(o.CacheDir, "*.lock"))
		treetest.Must(t, err)
	}
}

// TestUnlockIsRepeated: what is called again, to see whether the folder answers, does not take the lock of whoever came next.
func TestUnlockIsRepeated(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
	var path string
	o.CallFolder = func(_ context.Context, op string, call func() (any, error), _ func(any)) (any, error) {
		if op != "unlock the list" {
			return call()
		}
		locks, err := filepath.Glob(filepath.Join(o.CacheDir, "*.lock"))
		if err != nil || len(locks) != 1 {
			t.Fatal(locks, err)
		}
		path = locks[0]
		v, err := call()
		treetest.Must(t, os.WriteFile(path, nil, 0o600)) // the next one's
		_, _ = call()
		return v, err
	}
	open(t, root, o)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the next lock is gone: %v", err)
	}
}

// TestListOnAnotherMachine: a list in a file that may hang is copied, and read as any other.
func TestListOnAnotherMachine(t *testing.T) {
	root, o := many(t, 3000, 100), options(t)
	s := open(t, root, o)
	f, err := os.Open(manifestFile(t, o.CacheDir))
	treetest.Must(t, err)
	defer f.Close()
	if mayHang(f) {
		t.Error("a file of this machine may hang")
	}
	m, err := copyFile(f, len(s.memory.data))
	treetest.Must(t, err)
	defer m.free()
	if !slices.Equal(m.data, s.memory.data) {
		t.Error("the copy differs")
	}
	if _, err := copyFile(f, len(s.memory.data)+1); err == nil {
		t.Error("a copy of more than there is")
	}
	other, err := os.Open("/proc/self/status")
	treetest.Must(t, err)
	defer other.Close()
	if !mayHang(other) {
		t.Error("a file system that is not known does not hang")
	}
}

// TestListsInSharedMemoryAreBounded: they take a quarter of it at most, and 256 MiB.
func TestListsInSharedMemoryAreBounded(t *testing.T) {
	dir := t.TempDir()
	if got := privateLimit(dir); got != min(256<<20, fileSystemBytes(dir)/4) || got <= 0 {
		t.Errorf("%d bytes", got)
	}
	if got := privateLimit(filepath.Join(dir, "gone")); got != 0 {
		t.Errorf("%d bytes in no folder", got)
	}
	var told []*KeepError
	o := nowhere(t, &told)
	o.sharedMemory, o.CacheBytes = dir, 100
	treetest.Must(t, os.Chmod(dir, 0o700))
	open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), o)
	if len(told) != 1 || told[0].Folder != "" || !errors.Is(told[0], errNoRoom) {
		t.Errorf("told %v", told)
	}
}
