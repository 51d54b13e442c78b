package server_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// pulses sends two ranks' steps of a job that takes 2 × 16 samples in 0.1 s without idle.
func pulses(trs []*trainer, from, n uint64, idle float64) {
	for rank, tr := range trs {
		var steps []*pb.Step
		for k := from; k < from+n; k++ {
			steps = append(steps, &pb.Step{Number: k, Step: 0.1 + idle, Wait: idle, Idle: proto.Float64(idle)})
		}
		tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: &pb.Pulse{Rank: uint32(rank), World: 2, Samples: 16, Steps: steps}}})
	}
}

// A node says how many like it would feed its jobs: 320 samples a second at 11 ms of a core each, on four cores.
func TestNodesWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Samples: 1 << 20, Cores: 4, SampleTime: 11 * time.Millisecond}
		n := newNode(t, e, server.Options{})
		if w := n.Wanted(); w.Nodes != 0 {
			t.Errorf("without a job %+v", w)
		}
		trs := []*trainer{n.started(), n.started()}
		for _, tr := range trs {
			for id := range uint64(10) {
				tr.want(id+1, rangeOf(0, id, 16))
			}
			for range 10 {
				tr.mustNext()
			}
		}
		time.Sleep(20 * time.Second)
		for i := range uint64(10) {
			pulses(trs, 40*i, 40, 0.2)
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		const truth = 2 // 1.15 × 320 × 0.011 ÷ 4 = 1.01
		if w := n.Wanted(); w.Nodes != truth || math.Abs(w.Effective-4) > 0.2 || w.UpperBound {
			t.Errorf("%+v, want %d nodes", w, truth)
		}
		if k := n.counted("nodes_wanted"); k != truth {
			t.Errorf("the metric says %d", k)
		}
		w, err := n.watch(100 * time.Millisecond).Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Jobs) != 1 || w.Jobs[0].GetNodesWanted() != truth || w.Jobs[0].UpperBound {
			t.Errorf("Watch says %v", w.Jobs)
		}
	})
}

// A job whose loop waits for longer than half a minute, and has shown no step, wants more nodes than there are where
// the node has work in its queue; what the loop waits for is something else where it has none.
func TestNodesWantedBeforeTheFirstStep(t *testing.T) {
	for queued, want := range map[uint32]bool{0: false, 100: true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(t, &servertest.Engine{Samples: 1 << 20, Cores: 1, SampleTime: time.Second}, server.Options{})
			tr := n.started()
			if queued > 0 {
				tr.want(1, rangeOf(0, 0, queued))
			}
			p := &pb.Pulse{World: 2, Samples: 16, Blocked: durationpb.New(40 * time.Second)}
			tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: p}})
			time.Sleep(time.Second)
			w, err := n.watch(100 * time.Millisecond).Recv()
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Jobs) != 1 || w.Jobs[0].NodesWanted != nil || w.Jobs[0].UpperBound != want {
				t.Errorf("%d samples queued: %v", queued, w.Jobs)
			}
			tr.cancel()
		})
	}
}

// Pulses of nonsense leave a number of nodes that can be.
func TestLyingPulses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Cores: 4, SampleTime: 11 * time.Millisecond}, server.Options{})
		tr := n.started()
		tr.want(1, rangeOf(0, 0, 16))
		tr.mustNext()
		number := uint64(0)
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e-300, 1e300} {
			var steps []*pb.Step
			for range 100 {
				number++
				steps = append(steps, &pb.Step{Number: number, Step: x, Wait: x, Idle: &x}, &pb.Step{Number: number << 20, Step: 0.1, Wait: x, Idle: &x})
			}
			tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: &pb.Pulse{World: 1, Samples: 1 << 30, Steps: steps}}})
			time.Sleep(20 * time.Second)
			if w := n.Wanted(); w.Nodes < 1 || w.Nodes > 1<<20 {
				t.Errorf("%v: %+v", x, w)
			}
		}
		tr.want(2, rangeOf(0, 1, 16))
		if a := tr.mustNext(); a.failure != nil {
			t.Error(a.failure)
		}
	})
}
