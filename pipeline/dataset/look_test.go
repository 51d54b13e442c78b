package dataset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// TestSlowStorage: a storage that takes 1 ms for each question is asked many at once, in one folder too, and the list is the same.
func TestSlowStorage(t *testing.T) {
	for _, test := range []struct {
		name        string
		n, perClass int
		faster      float64
	}{{"one folder", 20_000, 20_000, 20}, {"eight folders", 20_000, 2500, 4}, {"many folders", 5_000, 10, 1}} {
		t.Run(test.name, func(t *testing.T) {
			root := many(t, test.n, test.perClass)
			one, lone := timed(t, root, 1)
			all, together := timed(t, root, 0)
			if !sameLists(one.manifest, all.manifest) {
				t.Error("other lists")
			}
			t.Logf("one at a time %v, together %v: %.0f times as fast", lone, together, float64(lone)/float64(together))
			if float64(lone) < test.faster*float64(together) {
				t.Errorf("%v one at a time, %v together", lone, together)
			}
		})
	}
}

// timed scans a folder on a storage that takes 1 ms for each question, in virtual time; stats as in Options.
func timed(t *testing.T, root string, stats int) (s *Snapshot, took time.Duration) {
	o := options(t)
	o.Stats, o.slow = stats, func() { time.Sleep(time.Millisecond) }
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var err error
		s, err = Open(t.Context(), root, o)
		treetest.Must(t, err)
		took = time.Since(began)
	})
	t.Cleanup(func() { treetest.Must(t, s.Close()) })
	return s, took
}

// TestStorageWithoutProfit: where more questions at once bring no more answers, few are asked.
func TestStorageWithoutProfit(t *testing.T) {
	root, o := many(t, 20_000, 20_000), options(t)
	var now, most atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		disk := make(chan struct{}, 8)
		o.slow = func() {
			most.Store(max(most.Load(), now.Add(1)))
			disk <- struct{}{}
			time.Sleep(time.Millisecond)
			<-disk
			now.Add(-1)
		}
		s, err := Open(t.Context(), root, o)
		treetest.Must(t, err)
		treetest.Must(t, s.Close())
	})
	if most.Load() > 8*8 {
		t.Errorf("%d questions at once to a storage that answers 8", most.Load())
	}
}

// TestFirstError: of several entries that cannot be listed the first in the directory's order is named, however many are looked at at once.
func TestFirstError(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		root := t.TempDir()
		lines := []string{"a/sub/x.jpg", "b/y.jpg"}
		for i := range 200 {
			lines = append(lines, fmt.Sprintf("a/%d.jpg", i))
			switch r.IntN(60) {
			case 0:
				lines = append(lines, fmt.Sprintf("a/gone%d.jpg -> nowhere", i))
			case 1:
				lines = append(lines, fmt.Sprintf("a/circle%d.png -> circle%d.png", i, i))
			case 2:
				lines = append(lines, fmt.Sprintf("a/device%d.png -> /dev/null", i))
			}
		}
		treetest.Grow(t, root, lines...)
		want := firstBad(t, root+"/a")
		for _, stats := range []int{1, 256} {
			o := options(t)
			o.Stats = stats
			s, err := Open(t.Context(), root, o)
			switch {
			case err == nil && want == "":
				treetest.Must(t, s.Close())
			case err == nil || want == "" || !strings.Contains(err.Error(), "a/"+want+":"):
				t.Errorf("%d at once: %v, want an error of %q", stats, err, want)
			}
		}
	}
}

// firstBad is the first name in the order of a directory that cannot be listed.
func firstBad(t *testing.T, path string) string {
	d, err := os.Open(path)
	treetest.Must(t, err)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	treetest.Must(t, err)
	for _, name := range names {
		if a, err := os.Stat(path + "/" + name); err != nil || !a.Mode().IsRegular() && !a.IsDir() {
			return name
		}
	}
	return ""
}
