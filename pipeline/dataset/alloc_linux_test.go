//go:build linux && !portable && !race

package dataset

import (
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
)

// TestNothingIsAllocated: under the race detector a sync.Pool drops some of what it is given, so there this cannot hold.
func TestNothingIsAllocated(t *testing.T) {
	s := open(t, grow(t, t.TempDir(), "a/x.jpg", "a/"+strings.Repeat("long", 60)+".jpg", "b/sub/y.jpg"), options(t))
	key := make([]byte, 0, manifest.MaxKeyBytes)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 3 {
			_, err := s.At(i, key)
			must(t, err)
		}
	}); n != 0 {
		t.Errorf("At allocates %v times", n)
	}
	buf := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 3 {
			var err error
			buf, err = s.Read(t.Context(), i, buf)
			must(t, err)
		}
	}); n != 0 {
		t.Errorf("Read allocates %v times", n)
	}
}
