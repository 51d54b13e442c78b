package dataset

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestLinksThatLeadOut: a link out of the root is an error that names it, whatever it is called and leads to; never a sample, and never one that
// is left out.
func TestLinksThatLeadOut(t *testing.T) {
	for link, name := range map[string]string{
		"a/class/stolen.jpg -> ../../b/secret/s.jpg":           "class/stolen.jpg",
		"a/stolen -> ../b/secret":                              "stolen",
		"a/class/deep -> ../../b/secret":                       "class/deep",
		"a/class/notes.txt -> ../../b/secret/s.jpg":            "class/notes.txt",
		"a/class/up.jpg -> ../../../../../../etc/hostname":     "class/up.jpg",
		"a/class/absolute.jpg -> /etc/hostname":                "class/absolute.jpg",
		"a/class/through.jpg -> ../other/../../b/secret/s.jpg": "class/through.jpg",
	} {
		base := treetest.Grow(t, t.TempDir(), "a/class/x.jpg", "a/other/y.jpg", "b/secret/s.jpg", link)
		o := options(t)
		o.Beneath = base + "/a"
		_, err := Open(t.Context(), base+"/a", o)
		if !errors.Is(err, ErrLeadsOut) || !strings.Contains(err.Error(), " "+name+":") || !strings.Contains(err.Error(), "--links=anywhere") {
			t.Errorf("%s: %v", link, err)
		}
		if _, err := Open(t.Context(), base+"/a/../b", o); !errors.Is(err, ErrLeadsOut) {
			t.Errorf("a data set beside the root: %v", err)
		}
	}
}

// TestLinksWithinTheRoot: links that stay in the root, also absolute ones and those to another data set of it, make the same list as where
// links may lead anywhere, and their files are read.
func TestLinksWithinTheRoot(t *testing.T) {
	base := treetest.Grow(t, t.TempDir(), "a/class/x.jpg", "a/class/sub/z.jpg", "b/more/s.jpg", "a/class/one.jpg -> x.jpg", "a/class/two.jpg -> ../../b/more/s.jpg",
		"a/linked -> ../b/more", "a/class/note -> nowhere")
	treetest.Grow(t, base, "a/class/three.jpg -> "+base+"/b/more/s.jpg", "a/absolute -> "+base+"/b/more")
	o := options(t)
	want := open(t, base+"/a", o)
	o.Beneath = base
	got := open(t, base+"/a", o)
	if got.Cached() {
		t.Error("the list that was made without a look at links is used")
	}
	if got.Fingerprint() != want.Fingerprint() || got.Len() != 7 {
		t.Errorf("%d samples %v, want %v", got.Len(), keys(t, got), keys(t, want))
	}
	for i := range got.Len() {
		if _, err := got.Read(t.Context(), i, nil); err != nil {
			t.Error(err)
		}
	}
	if !open(t, base+"/a", o).Cached() {
		t.Error("the list is not found again")
	}
}

// TestLinkPlantedAfterTheScan: a file or a folder that becomes a link out of the root is not read.
func TestLinkPlantedAfterTheScan(t *testing.T) {
	base := treetest.Grow(t, t.TempDir(), "a/class/x.jpg", "a/other/y.jpg", "b/class/x.jpg", "b/other/y.jpg")
	o := options(t)
	o.Beneath = base + "/a"
	s := open(t, base+"/a", o)
	for _, path := range []string{"/class/x.jpg", "/other/y.jpg"} {
		fi, err := os.Stat(base + "/a" + path)
		treetest.Must(t, err)
		treetest.Must(t, os.Chtimes(base+"/b"+path, time.Time{}, fi.ModTime()))
	}
	treetest.Must(t, os.Remove(base+"/a/class/x.jpg"))
	treetest.Must(t, os.Symlink("../../b/class/x.jpg", base+"/a/class/x.jpg"))
	treetest.Must(t, os.Rename(base+"/a/other", base+"/a/moved"))
	treetest.Must(t, os.Symlink("../b/other", base+"/a/other"))
	for i := range s.Len() {
		if b, err := s.Read(t.Context(), i, nil); !errors.Is(err, ErrLeadsOut) {
			t.Errorf("sample %d: %q, %v", i, b, err)
		}
	}
}
