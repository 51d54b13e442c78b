//go:build !race

package pipeline

import (
	"runtime"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
)

// TestSamplesAllocateNothing: what a batch allocates does not grow with its samples. Under the race detector a sync.Pool drops some of what it is
// given, so there this cannot hold.
func TestSamplesAllocateNothing(t *testing.T) {
	j := open(t, folder(t), `{"transforms": [{"op": "RandomCrop", "size": 32, "pad_if_needed": true}]}`, Options{Workers: 1})
	count := func(samples int) uint64 {
		least := ^uint64(0)
		for range 20 { // at first memory grows, and the runtime allocates now and then
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := <-begin(t, j, batch.Name{Count: samples})
			runtime.ReadMemStats(&after)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			least = min(least, after.Mallocs-before.Mallocs)
		}
		return least
	}
	if one, some := count(1), count(20); some > one+10 {
		t.Errorf("a batch of 1 sample allocates %d times, one of 20 samples %d times", one, some)
	}
}
