package pipeline

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
)

// What sends and receives has its turn with every sample, however much there is to make.
func TestWorkersYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	j := open(t, folder(t), fmt.Sprintf(cropPlan, ""), Options{Workers: 1})
	fetch(t, j, batch.Name{Count: 50}) // makes what is made once
	var turns, over atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for over.Load() == 0 {
			turns.Add(1)
			runtime.Gosched()
		}
	}()
	const samples = 500
	turns.Store(0)
	fetch(t, j, batch.Name{Count: samples})
	n := turns.Load()
	over.Store(1)
	<-ended
	if n < samples/2 {
		t.Errorf("%d turns while %d samples were made", n, samples)
	}
}
