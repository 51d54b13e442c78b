package dataset

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// exchangeFolder puts a copy of a folder, with the same times, in its place, and returns where the folder itself lies
// then.
func exchangeFolder(t *testing.T, root string) (earlier string) {
	t.Helper()
	earlier = root + ".earlier"
	treetest.Must(t, os.Rename(root, earlier))
	treetest.Must(t, os.CopyFS(root, os.DirFS(earlier)))
	for _, name := range []string{"/a/x.jpg", "/a/y.jpg"} {
		info, err := os.Stat(earlier + name)
		treetest.Must(t, err)
		treetest.Must(t, os.Chtimes(root+name, time.Time{}, info.ModTime()))
	}
	return earlier
}

// What was open of a folder may hang for ever when its storage comes back: from then on it is read through what lies in
// its place now.
func TestReadInAnotherTurn(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir()+"/root", "a/x.jpg", "a/y.jpg"), options(t)
	o.Generation = 3
	s := open(t, root, o)
	earlier := exchangeFolder(t, root)
	before := s.held()
	defer func() { treetest.Must(t, before.release()) }()
	read := func(generation uint64) error { _, err := s.ReadIn(t.Context(), generation, 0, nil); return err }
	if err := read(3); err != nil || s.source != before {
		t.Errorf("%v; opened anew: %v", err, s.source != before)
	}
	treetest.Must(t, os.RemoveAll(earlier)) // reads of it end at once, and badly
	treetest.Must(t, os.Rename(root, earlier))
	treetest.Must(t, os.Mkdir(root, 0o700)) // nothing is mounted yet
	if err := read(4); err == nil || errors.As(err, new(*ChangedError)) || s.Generation() != 3 {
		t.Errorf("an empty folder lies there: %v, generation %d", err, s.Generation())
	}
	treetest.Must(t, os.Remove(root))
	treetest.Must(t, os.Rename(earlier, root))
	if err := read(4); err != nil || s.Generation() != 4 {
		t.Errorf("%v, generation %d", err, s.Generation())
	}
	after := s.source
	if err := read(4); err != nil || s.source != after || after == before {
		t.Errorf("%v; opened again: %v", err, s.source != after)
	}
}

// What is open may fail for ever when another file system was mounted in its place.
func TestReadWhereAnotherFolderLies(t *testing.T) {
	root := treetest.Grow(t, t.TempDir()+"/root", "a/x.jpg", "a/y.jpg")
	s := open(t, root, options(t))
	treetest.Must(t, os.RemoveAll(exchangeFolder(t, root)))
	for i := range 2 {
		if _, err := s.Read(t.Context(), i, nil); err != nil {
			t.Error(err)
		}
	}
	treetest.Must(t, os.Remove(root+"/a/x.jpg")) // the same folder: what changed there is told of
	if _, err := s.Read(t.Context(), 0, nil); !errors.As(err, new(*ChangedError)) {
		t.Errorf("%v, want a ChangedError", err)
	}
}

// Readers of a snapshot that is closed meanwhile leave nothing open.
func TestReadAnewOfAClosedSnapshot(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t))
	treetest.Must(t, s.Close())
	opened, err := s.reopen()
	treetest.Must(t, err)
	fresh := &source{Store: opened}
	if s.exchange(fresh, 1); fresh.users.Load() >= 0 || s.source != nil {
		t.Errorf("%d users, source %v", fresh.users.Load(), s.source)
	}
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	treetest.Must(t, Look(t.Context(), dir))
	if err := Look(t.Context(), dir+"/none"); err == nil {
		t.Error("no folder, no error")
	}
}
