//go:build linux && !portable

package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

const portable = false

// TestManifestCutWhileMapped: the kernel faults on what is gone; the process must live on.
func TestManifestCutWhileMapped(t *testing.T) {
	root, o := many(t, 3000, 100), options(t)
	s := open(t, root, o)
	treetest.Must(t, os.Truncate(manifestFile(t, o.CacheDir), 0))
	for _, i := range []int{0, s.Len() - 1} {
		if _, err := s.At(i, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("At(%d): %v, want %v", i, err, ErrDamaged)
		}
		if _, err := s.Read(t.Context(), i, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("Read(%d): %v, want %v", i, err, ErrDamaged)
		}
	}
}

// TestPackedManifestCutWhileMapped: so it must where the room for what is unpacked is counted.
func TestPackedManifestCutWhileMapped(t *testing.T) {
	place := filepath.Join(t.TempDir(), "x.parquet")
	copyParquet(t, "snappy", place)
	o := options(t)
	o.ReadCache = openBlocks(t, t.TempDir(), 1<<20)
	s := openParquet(t, place, o)
	if err := (unpacker{s}).checkRoom(); err != nil {
		t.Errorf("of a whole list: %v", err)
	}
	treetest.Must(t, os.Truncate(manifestFile(t, o.CacheDir), 0))
	if err := (unpacker{s}).checkRoom(); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, want %v", err, ErrDamaged)
	}
}

// TestPipeInAPicturesPlace: nobody will ever write to it.
func TestPipeInAPicturesPlace(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/x.jpg", "a/other.jpg")
	s := open(t, root, options(t))
	treetest.Must(t, os.Remove(root+"/a/x.jpg"))
	treetest.Must(t, unix.Mkfifo(root+"/a/x.jpg", 0o600))
	var changed *ChangedError
	if _, err := s.Read(t.Context(), 1, nil); !errors.As(err, &changed) || !strings.HasPrefix(changed.What, "is not a regular file") {
		t.Errorf("%v, want a ChangedError", err)
	}
	var refused *fs.PathError
	if _, err := Open(t.Context(), root, options(t)); !errors.As(err, &refused) || refused.Path != "a/x.jpg" {
		t.Errorf("scan: %v, want a PathError about a/x.jpg", err)
	}
	treetest.Must(t, os.Rename(root+"/a/x.jpg", root+"/a/pipe"))
	if got := keys(t, open(t, root, options(t))); len(got) != 1 {
		t.Errorf("samples %q, want a/other.jpg", got)
	}
}

func TestSocketInAPicturesPlace(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "a/x.jpg")
	s := open(t, root, options(t))
	treetest.Must(t, os.Remove(root+"/a/x.jpg"))
	treetest.Must(t, unix.Mknod(root+"/a/x.jpg", unix.S_IFSOCK|0o600, 0))
	var changed *ChangedError
	if _, err := s.Read(t.Context(), 0, nil); !errors.As(err, &changed) || !strings.HasPrefix(changed.What, "is not a regular file") {
		t.Errorf("%v, want a ChangedError", err)
	}
}

// TestPathsThatAreTooLong: they can be made, step by step, but not be opened at once.
func TestPathsThatAreTooLong(t *testing.T) {
	for _, test := range []struct{ last, want int }{{249, 0}, {250, 4096}} {
		root := t.TempDir()
		at, err := unix.Open(root, unix.O_DIRECTORY, 0)
		treetest.Must(t, err)
		folders := append(slices.Repeat([]string{strings.Repeat("f", 255)}, 15), "g")
		for _, folder := range folders {
			treetest.Must(t, unix.Mkdirat(at, folder, 0o700))
			below, err := unix.Openat(at, folder, unix.O_DIRECTORY, 0)
			treetest.Must(t, err)
			treetest.Must(t, unix.Close(at))
			at = below
		}
		fd, err := unix.Openat(at, strings.Repeat("n", test.last)+".jpg", unix.O_CREAT, 0o600) // key: 15×256 + 2 + last + 4 bytes
		treetest.Must(t, err)
		treetest.Must(t, errors.Join(unix.Close(fd), unix.Close(at)))
		s, err := Open(t.Context(), root, options(t))
		if test.want == 0 {
			treetest.Must(t, err)
			_, err = s.Read(t.Context(), 0, nil)
			treetest.Must(t, err)
			treetest.Must(t, s.Close())
			continue
		}
		var refused *fs.PathError
		if !errors.Is(err, syscall.ENAMETOOLONG) || !errors.As(err, &refused) || len(refused.Path) != test.want {
			t.Errorf("%.100v, want a PathError with %v", err, syscall.ENAMETOOLONG)
		}
	}
}

// TestOutOfHandles: no handle is left is this process's trouble, not the data's.
func TestOutOfHandles(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg"), options(t))
	var limit unix.Rlimit
	treetest.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer func() { treetest.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	treetest.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}))
	_, err := s.Read(t.Context(), 0, nil)
	var refused *fs.PathError
	if !errors.Is(err, syscall.EMFILE) || !errors.As(err, &refused) || refused.Path != "a/x.jpg" {
		t.Errorf("%v, want a PathError with %v", err, syscall.EMFILE)
	}
}

// TestHandlesAreGivenBack: after whatever happened, nothing is open but what was.
func TestHandlesAreGivenBack(t *testing.T) {
	before := handles(t)
	root, o := treetest.Grow(t, t.TempDir(), "a/x.jpg", "a/y.jpg", "b/c/d/z.jpg"), options(t)
	for range 3 {
		s, err := Open(t.Context(), root, o)
		treetest.Must(t, err)
		_, err = s.Read(t.Context(), 0, nil)
		treetest.Must(t, err)
		treetest.Must(t, os.Chtimes(root+"/a/y.jpg", later(), later()))
		if _, err := s.Read(t.Context(), 1, nil); err == nil {
			t.Error("no error")
		}
		treetest.Must(t, s.Close())
	}
	for _, broken := range []string{"a/loop -> .", "e/", "a/nowhere.jpg -> nowhere"} {
		treetest.Grow(t, root, broken)
		if _, err := Open(t.Context(), root, o); err == nil {
			t.Errorf("%s: no error", broken)
		}
	}
	if after := handles(t); after != before {
		t.Errorf("%d open handles, were %d", after, before)
	}
}
