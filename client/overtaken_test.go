package client

import (
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// A node that is slower than another one which was asked later has not failed: it is known to be slow, and not doubted
// however often that happens.
func TestSlowNodeIsNotDoubtedWhenHedgesWin(t *testing.T) {
	began := time.Now()
	f, _, _ := waiting(t, began)
	slow := f.roster.live[0]
	quick := f.roster.newMember(slow.node, false)
	quick.chosen = true
	quick.session = &session{member: quick, stream: &deafStream{heard: began}, workers: 2, lastAnswer: began, firstAsked: began}
	now := began
	for i := range 5 {
		w := &Want{
			Name:    &pb.Name{Samples: &pb.Name_Range{Range: &pb.Range{Position: uint64(i), Count: 8}}},
			Request: batch.Request{Dst: make([]byte, 8)}, Spare: func(n int) []byte { return make([]byte, n) }, Done: func(Result) {},
		}
		w.count = 8
		f.queue.all[w] = struct{}{}
		f.inFlight.sendWant(w, slow.session, now)
		w.attempts[0].markBegun(now)
		now = now.Add(2 * time.Second)
		if !f.inFlight.sendWant(w, quick.session, now) {
			t.Fatal("no hedge")
		}
		now = now.Add(10 * time.Millisecond)
		f.inFlight.handleAnswer(w.attempts[1], node.Answer{Header: &pb.Header{}, Data: w.spare})
		f.inFlight.handleAnswer(w.attempts[0], node.Answer{Err: node.ErrCancelled})
	}
	if f.inFlight.effort.HedgesWon != 5 {
		t.Errorf("%d hedges won", f.inFlight.effort.HedgesWon)
	}
	if slow.trust.IsDoubted() || slow.failures > 0 {
		t.Error("the slow node is taken for one that fails")
	}
	if s, q := slow.speed.SampleSeconds(), quick.speed.SampleSeconds(); s < 10*q {
		t.Errorf("a sample takes %g s there and %g s at the quick one", s, q)
	}
}
