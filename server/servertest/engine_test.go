package servertest

import (
	"sync"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// A node asks for the work done while wants are cancelled: neither waits for the other for ever.
func TestCancelWhileWorkIsAsked(t *testing.T) {
	e := &Engine{}
	d, err := e.Scan(t.Context(), snapshots.Folder{Path: ""}, false, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Prepare(&pipeline.Plan{}, d)
	if err != nil {
		t.Fatal(err)
	}
	var asked sync.WaitGroup
	stop := make(chan struct{})
	asked.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				e.Work()
			}
		}
	})
	for range 20_000 {
		w := &pipeline.Want{Name: batch.Name{Count: 1}, Done: func(pipeline.Result) {}}
		if err := m.Submit(w); err != nil {
			t.Fatal(err)
		}
		m.Cancel(w)
	}
	close(stop)
	asked.Wait()
	e.Close()
	if n := e.Made(); n != 20_000 {
		t.Errorf("%d wants ended", n)
	}
}
