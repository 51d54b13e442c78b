package dataset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// Class folders without pictures are classes without samples where they may be, also from the cache, and an error elsewhere.
func TestEmptyClasses(t *testing.T) {
	for name, files := range map[string][]string{
		"amid": {"a/1.png", "a/2.png", "b/", "b/deep/notes.txt", "c/", "d/3.png"}, "first and last": {"a/", "b/1.png", "c/"},
	} {
		root := treetest.Grow(t, t.TempDir(), files...)
		o := options(t)
		for _, cached := range []bool{false, true} {
			o.Empty = true
			s := open(t, root, o)
			var got []string
			for i := range s.Len() {
				one, err := s.At(i, nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s.Classes()[one.Label].Name+"/"+string(one.Key[strings.IndexByte(string(one.Key), '/')+1:]))
			}
			if want := keys(t, s); !slices.Equal(got, want) || s.Cached() != cached {
				t.Errorf("%s: %v by label, %v by name, cached %v", name, got, want, s.Cached())
			}
			if err := s.CheckEmpty(); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "no picture") {
				t.Errorf("%s: %v", name, err)
			}
			o.Empty = false
			if _, err := Open(context.Background(), root, o); !errors.Is(err, ErrLayout) {
				t.Errorf("%s: without Empty: %v", name, err)
			}
		}
	}
	o := options(t)
	o.Empty = true
	if _, err := Open(context.Background(), treetest.Grow(t, t.TempDir(), "a/", "b/x.txt"), o); !errors.Is(err, ErrLayout) {
		t.Errorf("nothing but empty classes: %v", err)
	}
	whole := open(t, treetest.Grow(t, t.TempDir(), "a/1.png"), o)
	more := open(t, treetest.Grow(t, t.TempDir(), "a/1.png", "b/"), o)
	if err := whole.CheckEmpty(); err != nil || whole.Fingerprint() == more.Fingerprint() {
		t.Errorf("%v; with an empty class the fingerprint is the same: %v", err, whole.Fingerprint() == more.Fingerprint())
	}
}
