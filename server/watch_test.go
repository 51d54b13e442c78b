package server_test

import (
	"context"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

func (n *node) watch(interval time.Duration) pb.Feed_WatchClient {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	n.t.Cleanup(cancel)
	w, err := pb.NewFeedClient(n.conn()).Watch(ctx, &pb.WatchRequest{Interval: durationpb.New(interval)})
	if err != nil {
		n.t.Fatal(err)
	}
	return w
}

// awaitState receives states until one is as it should be.
func awaitState(t *testing.T, w pb.Feed_WatchClient, otherwise string, done func(*pb.WatchResponse) bool) *pb.WatchResponse {
	t.Helper()
	for {
		r, err := w.Recv()
		if err != nil {
			t.Fatalf("%s: %v", otherwise, err)
		}
		if done(r) {
			return r
		}
	}
}

func TestWatchTellsJobsAndLoad(t *testing.T) {
	n := newNode(t, &servertest.Engine{Result: func(_ *pipeline.Name, r *pipeline.Result) { r.CoreSeconds = 0.5 }}, server.Options{Version: "v1"})
	w := n.watch(100 * time.Millisecond)
	first := awaitState(t, w, "no state", func(*pb.WatchResponse) bool { return true })
	if p := first.Process; p.Kind != "node" || p.Version != "v1" || p.Cores != 2 || p.ResidentBytes == 0 || len(first.Jobs) != 0 || len(first.Nodes) != 1 {
		t.Errorf("at first: %v", first)
	}
	tr := n.fetch(n.conn())
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: n.open(plan).Plan, Job: "rn50\x1b[2J"}}})
	steps := make([]*pb.Step, 50)
	for i := range steps {
		steps[i] = &pb.Step{Number: uint64(i), Step: 0.2, Wait: 0.1, Idle: proto.Float64(0.06)}
	}
	tr.send(pulseOf(&pb.Pulse{Rank: 1, World: 2, Samples: 8, Steps: steps, Host: "gpu-1"}))
	tr.want(1, rangeOf(0, 0, 8))
	tr.mustNext()
	r := awaitState(t, w, "the batch is not told of", func(r *pb.WatchResponse) bool {
		return len(r.Jobs) == 1 && r.Jobs[0].Idle != nil && r.Nodes[0].SamplesPerSecond > 0
	})
	j := r.Jobs[0]
	if j.Job != "rn50�[2J" || j.World != 2 || math.Abs(j.GetIdle()-0.3) > 1e-9 || j.Verdict != "data-bound" || len(j.Ranks) != 1 || j.Ranks[0].Host != "gpu-1" || j.Nodes != 1 {
		t.Errorf("job %v", j)
	}
	if c := r.Nodes[0].GetCoreSecondsPerSample(); math.Abs(c-0.5/8) > 1e-9 {
		t.Errorf("%g core-seconds per sample", c)
	}
	tr.cancel()
	awaitState(t, w, "the job stays", func(r *pb.WatchResponse) bool { return len(r.Jobs) == 0 && r.Nodes[0].Wants == 0 })
}

func TestWatchRefuses(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	for _, d := range []time.Duration{-1, 0, time.Millisecond, time.Hour} {
		if _, err := n.watch(d).Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("interval %s: %v", d, err)
		}
	}
	w, err := pb.NewFeedClient(n.conn()).Watch(t.Context(), &pb.WatchRequest{}) // the standard one
	if err == nil {
		_, err = w.Recv()
	}
	if err != nil {
		t.Error(err)
	}
}

// Watchers do not hold a node up that is to go.
func TestWatchEndsWithTheNode(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	w := n.watch(100 * time.Millisecond)
	if _, err := w.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(t.Context(), n.grpc); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Recv(); err != nil {
			break
		}
	}
}

func TestWatchersAreBounded(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	const most, more = 64, 3
	var all []pb.Feed_WatchClient
	for range most + more {
		all = append(all, n.watch(time.Minute))
	}
	refused := 0
	for _, w := range all {
		_, err := w.Recv()
		if status.Code(err) == codes.ResourceExhausted {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != more {
		t.Errorf("%d watchers were refused, want %d", refused, more)
	}
}
