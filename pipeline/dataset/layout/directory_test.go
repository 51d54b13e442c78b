package layout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow makes files below root, whose sizes are the lengths of their names.
func grow(t testing.TB, root string, names ...string) string {
	t.Helper()
	for _, name := range names {
		must(t, os.MkdirAll(filepath.Dir(root+"/"+name), 0o700))
		must(t, os.WriteFile(root+"/"+name, []byte(name), 0o600))
	}
	return root
}

// optionsOf a scan in tests.
func optionsOf() Options {
	return Options{Progress: func(int) {}, Readers: 8, Stats: 8, Slow: func() {}}
}

// TestHugeFolder: room is made for just what is there, and then everything is listed.
func TestHugeFolder(t *testing.T) {
	root := grow(t, t.TempDir(), "1.jpg", "22.png", "333.txt")
	must(t, os.Mkdir(root+"/4", 0o700))
	r, err := store.OpenFiles(root, "", nil)
	must(t, err)
	defer func() { must(t, r.Close()) }()
	d, err := r.OpenDirectory(t.Context(), "", make([]byte, 4096))
	must(t, err)
	defer d.Close()
	o := optionsOf()
	f := &folder{Attributes: store.Attributes{Size: 1 << 30}}
	must(t, f.reserve(d))
	if cap(f.pictures) != 2 || cap(f.names) != len("1.jpg22.png") {
		t.Errorf("room for %d pictures, %d bytes of names", cap(f.pictures), cap(f.names))
	}
	must(t, newScanner(r, &o).entries(t.Context(), f, d))
	if len(f.pictures) != 2 || len(f.below) != 1 {
		t.Errorf("%d pictures and %d folders listed", len(f.pictures), len(f.below))
	}
}
