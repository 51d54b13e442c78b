package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A want that is late keeps its place at the node that is asked next: it comes before one that is due now and was there
// earlier.
func TestLateWantsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Cores: 1, SampleTime: time.Second}, server.Options{})
		tr := n.started()
		due := map[uint64]time.Duration{1: 0, 2: 0, 3: -10 * time.Second, 4: -20 * time.Second}
		for id := range uint64(4) {
			w := wantOf(id+1, rangeOf(0, 8*id, 8))
			w.GetWant().Due = durationpb.New(due[id+1])
			tr.send(w)
			time.Sleep(time.Millisecond)
		}
		var order []uint64
		for range 4 {
			order = append(order, tr.mustNext().id)
		}
		if order[0] != 4 || order[1] != 3 || order[2] != 1 || order[3] != 2 {
			t.Errorf("batches came in order %v", order)
		}
		tr.cancel()
	})
}
