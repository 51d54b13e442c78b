package server_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

func pulseOf(p *pb.Pulse) *pb.FetchRequest {
	return &pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: p}}
}

// A trainer that lies, floods or tells nonsense gets its batches all the same, and so does the one beside it.
func TestHostilePulses(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	bad, good := n.started(), n.started()
	many := make([]*pb.Step, 10_000)
	for i := range many {
		x := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, math.MaxFloat64}[i%6]
		many[i] = &pb.Step{Number: uint64(i), Step: x, Wait: x, Idle: proto.Float64(x), Transfer: proto.Float64(x)}
	}
	for i := range uint32(200) {
		bad.send(pulseOf(&pb.Pulse{Rank: i * 1_000_003, World: math.MaxUint32, Steps: many, Samples: math.MaxUint32, Host: "\x1b[2J", Ready: i}))
		bad.send(pulseOf(nil))
	}
	for i := range uint64(3) {
		for _, tr := range []*trainer{bad, good} {
			tr.want(i+1, rangeOf(0, 8*i, 8))
			if a := tr.mustNext(); a.failure != nil {
				t.Fatal(a.failure)
			}
		}
	}
}

// A pulse before the start of a stream belongs to no job.
func TestPulseBeforeStart(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	tr := n.fetch(n.conn())
	tr.send(pulseOf(&pb.Pulse{World: 1}))
	tr.start(n.open(plan).Plan)
	tr.want(1, rangeOf(0, 0, 8))
	if a := tr.mustNext(); a.failure != nil {
		t.Fatal(a.failure)
	}
}
