package server_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// told is the next notice.
func (tr *trainer) told() *pb.Notice {
	tr.t.Helper()
	for {
		m, err := tr.stream.Recv()
		if err != nil {
			tr.t.Fatal(err)
		}
		if m.Notice != nil {
			return m.Notice
		}
	}
}

// A node tells which wants it has begun, which it had heard of, what a sample takes it and for how long it is busy.
func TestNoticeTellsHowFarANodeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Cores: 2, SampleTime: time.Second}, server.Options{})
		tr := n.started()
		tr.want(1, rangeOf(0, 0, 2))
		tr.mustNext() // now it is known what a sample takes
		tr.want(2, rangeOf(0, 2, 4))
		tr.want(3, rangeOf(0, 6, 4))
		said := tr.told()
		if said.Wants != 2 || said.Heard != 3 || !slices.Equal(said.Begun, []uint64{2}) {
			t.Errorf("%v", said)
		}
		if math.Abs(said.SampleSeconds-0.5) > 1e-6 || math.Abs(said.AheadSeconds-3) > 1e-6 { // 6 of 8 samples wait for two cores
			t.Errorf("%g s a sample, %g s ahead", said.SampleSeconds, said.AheadSeconds)
		}
		tr.mustNext()
		if said = tr.told(); !slices.Equal(said.Begun, []uint64{3}) {
			t.Errorf("later %v", said)
		}
		n.grpc.Stop()
	})
}

// A want whose deadline is over is given up by the node itself: its samples are not made, and its memory is free.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Cores: 1, SampleTime: time.Second}
		n := newNode(t, e, server.Options{})
		tr := n.started()
		late := wantOf(1, rangeOf(0, 0, 100))
		late.GetWant().Deadline = durationpb.New(10 * time.Second)
		tr.send(late)
		tr.want(2, rangeOf(0, 100, 1))
		if a := tr.mustNext(); a.id != 1 || codes.Code(a.failure.GetCode()) != codes.Canceled {
			t.Errorf("answer to %d: %v", a.id, a.failure)
		}
		if a := tr.mustNext(); a.id != 2 || a.failure != nil {
			t.Errorf("answer to %d: %v", a.id, a.failure)
		}
		if made := e.Work().CoreSeconds; made > 12 {
			t.Errorf("%g samples were made", made)
		}
		n.grpc.Stop()
	})
}
