package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

func TestPathsStayBelowTheirRoot(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(top, "root")
	for _, d := range []string{"root/a/b", "root/..x", "outside", "rootlike"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"root/in": "a/b", "root/out": "../outside", "root/like": "../rootlike", "root/abs": top, "root/back": "../root/a", "root/gone": "nowhere", "alias": "root"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	f := New(Options{Scanner: &scanner{}, Storage: bulkhead.New(bulkhead.Options{}), Roots: map[string]string{"r": root, "alias": filepath.Join(top, "alias")}})
	var path *PathError
	var missing *MissingError
	var unknown *RootError
	for _, c := range []struct {
		root, path, folder string
		err                any
	}{
		{"r", "", "root", nil},
		{"r", ".", "root", nil},
		{"r", "a/b", "root/a/b", nil},
		{"r", "a//b/", "root/a/b", nil},
		{"r", "a/../a/b", "root/a/b", nil},
		{"r", "in", "root/a/b", nil},
		{"r", "back/b", "root/a/b", nil},
		{"r", "..x", "root/..x", nil},
		{"alias", "a", "root/a", nil},
		{"r", "..", "", &path},
		{"r", "../root", "", &path},
		{"r", "a/../../root", "", &path},
		{"r", "/etc", "", &path},
		{"r", top, "", &path},
		{"r", "out", "", &path},
		{"r", "like", "", &path},
		{"r", "abs/outside", "", &path},
		{"r", "gone", "", &missing},
		{"r", "a/none", "", &missing},
		{"r", "a/\x00", "", new(error)},
		{"none", "a", "", &unknown},
	} {
		folder, err := f.locateFolder(t.Context(), pipeline.Source{Root: c.root, Path: filename.Name(c.path)})
		switch {
		case c.err == nil && (err != nil || folder.Path != filepath.Join(top, c.folder)):
			t.Errorf("%q: %q, %v", c.path, folder, err)
		case c.err != nil && (err == nil || !errors.As(err, c.err)):
			t.Errorf("%q: %q, error %v", c.path, folder, err)
		}
	}
	if _, err := f.locateFolder(t.Context(), pipeline.Source{Path: "a"}); !errors.As(err, &path) {
		t.Errorf("a relative path without a root: %v", err)
	}
}

// TestPathsBelowServers: a trainer names what lies below a root, and never a server, an option or a place beside the
// root.
func TestPathsBelowServers(t *testing.T) {
	const place = "s3://bucket/p?endpoint=http://h:1"
	o := Options{Scanner: &scanner{}, Storage: bulkhead.New(bulkhead.Options{}), Roots: map[string]string{"r": place}}
	f := New(o)
	for path, want := range map[string]string{
		"": place, "a/b": "s3://bucket/p/a/b?endpoint=http://h:1", "x-?.tar": "s3://bucket/p/x-?.tar?endpoint=http://h:1",
	} {
		if folder, err := f.locateFolder(t.Context(), pipeline.Source{Root: "r", Path: filename.Name(path)}); err != nil || folder.Path != want {
			t.Errorf("%q: %+v, %v, want %s", path, folder, err, want)
		}
	}
	var refused *PathError
	for _, path := range []string{"../q", "a?endpoint=http://evil", "a?anonymous=true", "a#b", "/s3://other", "a/../../q"} {
		if folder, err := f.locateFolder(t.Context(), pipeline.Source{Root: "r", Path: filename.Name(path)}); !errors.As(err, &refused) {
			t.Errorf("%q: %+v, %v, want a PathError", path, folder, err)
		}
	}
	if folder, err := f.OpenSource(t.Context(), everything{}, pipeline.Source{Path: place}, Look{}); err == nil {
		t.Errorf("an URL of a trainer's: %+v", folder)
	}
	o.AnyPath = true
	if folder, err := New(o).locateFolder(t.Context(), pipeline.Source{Path: place}); err != nil || folder.Path != place {
		t.Errorf("this process's own URL: %+v, %v", folder, err)
	}
	var missing *MissingError
	if _, err := New(o).locateFolder(t.Context(), pipeline.Source{Path: "gs://bucket/x"}); !errors.As(err, &missing) {
		t.Errorf("an URL that is not read: %v", err)
	}
}

// everything may be read.
type everything struct{}

func (everything) CheckRoot(string, []string) error          { return nil }
func (everything) AllowedRoots(have []string) (all []string) { return have }
func (everything) Name() string                              { return "" }
