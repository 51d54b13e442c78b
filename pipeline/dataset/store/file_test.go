package store

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// opened is the store of a folder, and the file a/x.jpg in it.
func opened(t *testing.T, root string) (*Files, *Object, file) {
	t.Helper()
	r, err := OpenFiles(root, "", nil)
	treetest.Must(t, err)
	t.Cleanup(func() { treetest.Must(t, r.Close()) })
	a, err := r.Stat(t.Context(), "a/x.jpg")
	treetest.Must(t, err)
	o := &Object{Name: []byte("a/x.jpg"), Size: a.Size, Modified: a.Modified}
	f, err := r.openObject(o)
	treetest.Must(t, err)
	return r, o, f
}

// TestReadAt reads parts of a file, and nothing beyond its end.
func TestReadAt(t *testing.T) {
	root := t.TempDir()
	treetest.Grow(t, root, "a/x.jpg")
	treetest.Must(t, os.WriteFile(root+"/a/x.jpg", []byte("0123456789"), 0o600))
	r, o, f := opened(t, root)
	defer f.close()
	for _, c := range []struct {
		off, n int
		want   string
	}{{0, 10, "0123456789"}, {3, 4, "3456"}, {9, 1, "9"}, {10, 0, ""}} {
		p := make([]byte, c.n)
		treetest.Must(t, r.ReadAt(t.Context(), o, p, int64(c.off)))
		if string(p) != c.want {
			t.Errorf("%d bytes from %d are %q, want %q", c.n, c.off, p, c.want)
		}
	}
	var changed *ChangedError
	if err := r.ReadAt(t.Context(), o, make([]byte, 2), 9); !errors.As(err, &changed) || changed.What != "ended after 10 bytes of 11" {
		t.Errorf("beyond the end: %v", err)
	}
}

// TestFileEndsEarly: the file is cut between the look at its size and the read.
func TestFileEndsEarly(t *testing.T) {
	_, o, f := opened(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"))
	defer f.close()
	err := f.fill(o, make([]byte, 9), 0)
	var changed *ChangedError
	if !errors.As(err, &changed) || changed.What != "ended after 7 bytes of 9" {
		t.Errorf("%v, want a ChangedError", err)
	}
}

// TestReadError: what the system refuses is no verdict on the data.
func TestReadError(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/x.jpg")
	_, o, f := opened(t, root)
	f.close()
	var refused *fs.PathError
	for name, err := range map[string]error{"read": f.fill(o, make([]byte, 7), 0), "stat": f.check(o)} {
		if !errors.As(err, &refused) || refused.Path != "a/x.jpg" || refused.Op != name {
			t.Errorf("%s: %v, want a PathError", name, err)
		}
	}
}

// TestWrittenWhileRead: the file is written between the look at its time and the read, or between two reads.
func TestWrittenWhileRead(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/x.jpg")
	treetest.Must(t, os.Chtimes(root+"/a/x.jpg", time.Time{}, time.Unix(1e9, 0)))
	_, o, f := opened(t, root)
	defer f.close()
	treetest.Must(t, f.check(o))
	w, err := os.OpenFile(root+"/a/x.jpg", os.O_WRONLY, 0)
	treetest.Must(t, err)
	_, err = w.WriteString("1234567")
	treetest.Must(t, errors.Join(err, w.Close()))
	var changed *ChangedError
	if err := f.fill(o, make([]byte, 7), 0); !errors.As(err, &changed) || !strings.HasPrefix(changed.What, "was written at") {
		t.Errorf("%v, want a ChangedError", err)
	}
}

func TestDirectoryIsStillTheSame(t *testing.T) {
	then := Attributes{Kind: KindFolder, Size: 1, Modified: 2, Changed: 3, Device: 4, Inode: 5}
	for _, test := range []struct {
		now  Attributes
		same bool
	}{
		{then, true},
		{Attributes{Kind: KindFolder, Size: 9, Modified: 2, Changed: 3, Device: 9, Inode: 5}, true},
		{Attributes{Kind: KindFolder, Size: 1, Modified: 9, Changed: 3, Device: 4, Inode: 5}, false},
		{Attributes{Kind: KindFolder, Size: 1, Modified: 2, Changed: 9, Device: 4, Inode: 5}, false},
		{Attributes{Kind: KindFolder, Size: 1, Modified: 2, Changed: 3, Device: 4, Inode: 9}, false},
	} {
		if test.now.IsStill(then) != test.same {
			t.Errorf("%+v after %+v: want %v", test.now, then, test.same)
		}
	}
}
