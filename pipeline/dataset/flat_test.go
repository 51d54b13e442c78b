package dataset

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// A flat folder is taken where it may be, also from the cache, and nowhere else; classes are as they were.
func TestFlatFolders(t *testing.T) {
	root := treetest.Grow(t, t.TempDir(), "b.png", "a.jpg", "notes.txt", "c.JPG")
	o := options(t)
	for _, cached := range []bool{false, true} {
		o.Flat = true
		s := open(t, root, o)
		if got := keys(t, s); !slices.Equal(got, []string{"a.jpg", "b.png", "c.JPG"}) || !s.Flat() || s.Cached() != cached {
			t.Errorf("%v, flat %v, cached %v", got, s.Flat(), s.Cached())
		}
		if buf, err := s.Read(t.Context(), 1, nil); err != nil || len(buf) != len("b.png") {
			t.Errorf("%d bytes, %v", len(buf), err)
		}
		o.Flat = false
		if _, err := Open(context.Background(), root, o); !errors.Is(err, ErrLayout) {
			t.Errorf("without Flat: %v", err)
		}
	}
	o.Flat = true
	classes := treetest.Grow(t, t.TempDir(), "x/1.png", "y/2.png", "3.png")
	if s := open(t, classes, o); s.Flat() || s.Len() != 2 || len(s.Classes()) != 2 {
		t.Errorf("%d samples, %v", s.Len(), s.Classes())
	}
	if _, err := Open(context.Background(), t.TempDir(), o); !errors.Is(err, ErrLayout) {
		t.Errorf("an empty folder: %v", err)
	}
}
