package dataset

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

func TestReadLeavesRoomBehindTheData(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/1.jpg", "a/22222222.jpg", "a/empty.jpg")
	treetest.Must(t, os.Truncate(root+"/a/empty.jpg", 0))
	s := open(t, root, options(t))
	for _, room := range []int{0, 1, 6, 7, 7 + Spare, 1000} {
		for i, want := range []int{len("a/1.jpg"), len("a/22222222.jpg"), 0} {
			buf := bytes.Repeat([]byte{'?'}, room)
			got, err := s.Read(t.Context(), i, buf)
			treetest.Must(t, err)
			if !bytes.Equal(got, bytes.Repeat([]byte{'x'}, want)) || cap(got)-len(got) < Spare {
				t.Errorf("sample %d with room %d: %q, spare %d", i, room, got, cap(got)-len(got))
			}
			if room >= want+Spare && &got[:1][0] != &buf[0] {
				t.Errorf("sample %d with room %d: read into another buffer", i, room)
			}
		}
	}
}

func TestTooLarge(t *testing.T) {
	o := options(t)
	o.MaxEncodedBytes = 8
	s := open(t, treetest.Grow(t, t.TempDir(), "a/1.jpg", "a/22.jpg", "a/333.jpg"), o)
	for i := range 2 {
		if _, err := s.Read(t.Context(), i, nil); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	var tooLarge *TooLargeError
	if _, err := s.Read(t.Context(), 2, nil); !errors.As(err, &tooLarge) || *tooLarge != (TooLargeError{"a/333.jpg", 9, 8}) {
		t.Errorf("%v, want a TooLargeError", err)
	}
}

// TestFilesTellChanges: a file that is not the one of the snapshot is never read, and the next Open scans.
func TestFilesTellChanges(t *testing.T) {
	write := func(path, data string) func(*testing.T, string) {
		return func(t *testing.T, root string) { treetest.Must(t, os.WriteFile(root+path, []byte(data), 0o600)) }
	}
	for _, test := range []struct {
		name   string
		change func(t *testing.T, root string)
		what   string
	}{
		{"longer", write("/a/x.jpg", "12345678"), "has 8 bytes, had 7"},
		{"shorter", func(t *testing.T, root string) { treetest.Must(t, os.Truncate(root+"/a/x.jpg", 3)) }, "has 3 bytes, had 7"},
		{"written over", write("/a/x.jpg", "1234567"), "was written at"},
		{"touched", func(t *testing.T, root string) {
			treetest.Must(t, os.Chtimes(root+"/a/x.jpg", time.Time{}, time.Unix(1, 500)))
		}, "was written at 1970-01-01T00:00:01.0000005Z, had 2001-09-09T01:46:40.123456789Z"},
		{"replaced", func(t *testing.T, root string) {
			treetest.Grow(t, root, "a/y.jpg")
			treetest.Must(t, os.Rename(root+"/a/y.jpg", root+"/a/x.jpg"))
		}, "was written at"},
		{"removed", func(t *testing.T, root string) { treetest.Must(t, os.Remove(root+"/a/x.jpg")) }, "is gone"},
		{"class renamed", func(t *testing.T, root string) { treetest.Must(t, os.Rename(root+"/a", root+"/b")) }, "is gone"},
		{"class is a file", func(t *testing.T, root string) {
			treetest.Must(t, os.RemoveAll(root+"/a"))
			treetest.Grow(t, root, "a")
		}, "is gone"},
		{"folder in its place", func(t *testing.T, root string) {
			treetest.Must(t, os.Remove(root+"/a/x.jpg"))
			treetest.Grow(t, root, "a/x.jpg/")
		}, "is not a regular file"},
		{"device in its place", func(t *testing.T, root string) {
			treetest.Must(t, os.Remove(root+"/a/x.jpg"))
			treetest.Grow(t, root, "a/x.jpg -> /dev/zero")
		}, "is not a regular file"},
		{"link that leads nowhere", func(t *testing.T, root string) {
			treetest.Must(t, os.Remove(root+"/a/x.jpg"))
			treetest.Grow(t, root, "a/x.jpg -> nowhere")
		}, "is gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t)
			treetest.Must(t, os.Chtimes(root+"/a/x.jpg", time.Time{}, time.Unix(1e9, 123456789)))
			s := open(t, root, o)
			buf, err := s.Read(t.Context(), 0, nil)
			treetest.Must(t, err)
			test.change(t, root)
			buf, err = s.Read(t.Context(), 0, buf)
			var changed *ChangedError
			if !errors.As(err, &changed) || changed.Path != "a/x.jpg" || !strings.HasPrefix(changed.What, test.what) {
				t.Fatalf("%v, want a ChangedError %q", err, test.what)
			}
			if len(buf) != 0 || cap(buf) == 0 {
				t.Errorf("the buffer came back with %d bytes of %d", len(buf), cap(buf))
			}
			if next, err := Open(t.Context(), root, o); err == nil {
				if next.Cached() {
					t.Error("the next snapshot is the old one")
				}
				treetest.Must(t, next.Close())
			}
		})
	}
}

// TestRootMoves: an open snapshot goes on reading the folder it opened.
func TestRootMoves(t *testing.T) {
	if portable {
		return // goes by the path
	}
	root := t.TempDir() + "/root"
	s := open(t, treetest.Grow(t, root, "a/x.jpg"), options(t))
	treetest.Must(t, os.Rename(root, root+".moved"))
	treetest.Grow(t, root, "a/x.jpg/")
	if _, err := s.Read(t.Context(), 0, nil); err != nil {
		t.Error(err)
	}
}

// TestForbidden: root may read everything, so it sees nothing here.
func TestForbidden(t *testing.T) {
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "b/y.jpg"), options(t)
	s := open(t, root, o)
	treetest.Must(t, os.Chmod(root+"/a/x.jpg", 0))
	treetest.Must(t, os.Chmod(root+"/b", 0))
	defer func() { treetest.Must(t, os.Chmod(root+"/b", 0o700)) }()
	if _, err := os.ReadDir(root + "/b"); err == nil {
		return
	}
	var refused *fs.PathError
	if _, err := s.Read(t.Context(), 0, nil); !errors.As(err, &refused) || refused.Path != "a/x.jpg" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read: %v, want a PathError about a/x.jpg", err)
	}
	if _, err := Open(t.Context(), root, o); !errors.As(err, &refused) || refused.Path != "b" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("scan: %v, want a PathError about b", err)
	}
}

// ReadLine brings what Read does, and leaves the line that it is given as it is.
func TestReadLine(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/1.jpg", "a/22222222.jpg", "b/3.jpg"), options(t))
	for i := range 3 {
		line, err := s.At(i, nil)
		treetest.Must(t, err)
		key := string(line.Key)
		got, err := s.ReadLine(t.Context(), 0, &line, nil)
		treetest.Must(t, err)
		if string(got) != strings.Repeat("x", len(key)) || string(line.Key) != key {
			t.Errorf("sample %d: %q of %s, want %d bytes of %s", i, got, line.Key, len(key), key)
		}
	}
	line, err := s.At(0, nil)
	treetest.Must(t, err)
	treetest.Must(t, s.Close())
	if _, err := s.ReadLine(t.Context(), 0, &line, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed snapshot: %v", err)
	}
}
