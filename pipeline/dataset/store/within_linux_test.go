//go:build !portable

package store

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// eachSystem runs a test on a system with openat2, on an old one, and behind a filter that forbids it.
func eachSystem(t *testing.T, test func(t *testing.T)) {
	before := openat2
	defer func() { openat2 = before }()
	for name, errno := range map[string]error{"openat2": nil, "old": unix.ENOSYS, "filtered": unix.EPERM} {
		t.Run(name, func(t *testing.T) {
			openat2 = before
			if errno != nil {
				openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, errno }
			}
			test(t)
		})
	}
}

// TestLinksBeneath: what links lead to within the folder is opened, read and looked at as if there were none; what
// they lead to elsewhere is not, also where a name becomes such a link later.
func TestLinksBeneath(t *testing.T) {
	eachSystem(t, func(t *testing.T) {
		base := treetest.Grow(t, t.TempDir(), "a/c/x.jpg", "b/s.jpg", "a/c/one.jpg -> x.jpg", "a/deep -> c", "a/c/out.jpg -> ../../b/s.jpg", "a/out -> ../b",
			"a/c/up.jpg -> ../../../../../../etc/hostname", "a/c/absolute.jpg -> /etc/hostname")
		treetest.Grow(t, base, "a/c/own.jpg -> "+base+"/a/c/x.jpg")
		r, err := OpenFiles(base+"/a", base+"/a", nil)
		treetest.Must(t, err)
		defer func() { treetest.Must(t, r.Close()) }()
		x, err := r.Stat(t.Context(), "c/x.jpg")
		treetest.Must(t, err)
		for _, name := range []string{"c/x.jpg", "c/one.jpg", "c/own.jpg", "deep/x.jpg"} {
			p := make([]byte, x.Size)
			treetest.Must(t, r.ReadAt(t.Context(), &Object{Name: []byte(name), Size: x.Size, Modified: x.Modified}, p, 0))
			if a, err := r.Stat(t.Context(), name); err != nil || a != x || !bytes.Equal(p, bytes.Repeat([]byte{'x'}, len(p))) {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
		}
		treetest.Must(t, os.Remove(base+"/a/c/x.jpg"))
		treetest.Must(t, os.Symlink("../../b/s.jpg", base+"/a/c/x.jpg"))
		for _, name := range []string{"c/out.jpg", "out/s.jpg", "c/up.jpg", "c/absolute.jpg", "c/x.jpg", "c/one.jpg", "c/own.jpg"} {
			_, err := r.Stat(t.Context(), name)
			if !errors.Is(err, ErrLeadsOut) {
				t.Errorf("look at %s: %v", name, err)
			}
			if err := r.ReadAt(t.Context(), &Object{Name: []byte(name), Size: 1}, make([]byte, 1), 0); !errors.Is(err, ErrLeadsOut) {
				t.Errorf("read %s: %v", name, err)
			}
		}
		if _, err := r.OpenDirectory(t.Context(), "out", make([]byte, 4096)); !errors.Is(err, ErrLeadsOut) {
			t.Errorf("open a directory elsewhere: %v", err)
		}
	})
}
