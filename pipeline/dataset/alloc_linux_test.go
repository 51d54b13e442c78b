//go:build linux && !portable && !race

package dataset

import (
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestNothingIsAllocated: under the race detector a sync.Pool drops some of what it is given, so there this cannot hold.
func TestNothingIsAllocated(t *testing.T) {
	s := open(t, treetest.Grow(t, t.TempDir(), "a/x.jpg", "a/"+strings.Repeat("long", 60)+".jpg", "b/sub/y.jpg"), options(t))
	key := make([]byte, 0, manifest.MaxKeyBytes)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 3 {
			_, err := s.At(i, key)
			treetest.Must(t, err)
		}
	}); n != 0 {
		t.Errorf("At allocates %v times", n)
	}
	buf := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 3 {
			var err error
			buf, err = s.Read(t.Context(), i, buf)
			treetest.Must(t, err)
		}
	}); n != 0 {
		t.Errorf("Read allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		for i := range 3 {
			line, err := s.At(i, key)
			treetest.Must(t, err)
			buf, err = s.ReadLine(t.Context(), 0, &line, buf)
			treetest.Must(t, err)
		}
	}); n != 0 {
		t.Errorf("ReadLine allocates %v times", n)
	}
}
