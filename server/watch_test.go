package server_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/batch"
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
	n := newNode(t, &servertest.Engine{Result: func(_ *batch.Name, r *pipeline.Result) { r.CoreSeconds = 0.5 }}, server.Options{Version: "v1"})
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
	if s := j.GetSecondsPerSample() * r.Nodes[0].Cores; math.Abs(s-0.5/8) > 1e-9 {
		t.Errorf("a sample of the job takes %g s on one core", s)
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

// Watchers are bounded, all together and those of each account, so that nobody takes the places of all.
func TestWatchersAreBounded(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{})
	const most, each, accounts = 64, 16, 5
	var tokens strings.Builder
	secret := func(i int) string { return fmt.Sprintf("%020d", i) }
	for i := range accounts {
		fmt.Fprintf(&tokens, "team-%d %s\n", i, secret(i))
	}
	g.write(tokens.String())
	total := 0
	for i := range accounts {
		s := shown{token: "Bearer " + secret(i)}
		client, let := pb.NewFeedClient(g.dial(s)), 0
		var all []pb.Feed_WatchClient
		for range each + 1 {
			w, err := client.Watch(s.context(t), &pb.WatchRequest{Interval: durationpb.New(time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
		for _, w := range all {
			if _, err := w.Recv(); err == nil {
				let++
			} else if status.Code(err) != codes.ResourceExhausted {
				t.Fatal(err)
			}
		}
		total += let
		if want := min(each, most-i*each); let != want {
			t.Errorf("account %d has %d watchers, want %d", i, let, want)
		}
	}
	if total != most {
		t.Errorf("%d watchers, want %d", total, most)
	}
}

// A watcher that keeps its connection and reads nothing loses its place.
func TestStalledWatcherLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{}, server.Options{StallTimeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := pb.NewFeedClient(n.conn(grpc.WithStaticStreamWindowSize(64<<10))).Watch(ctx, &pb.WatchRequest{Interval: durationpb.New(100 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if k := n.counted("stalled_streams_total"); k != 1 {
			t.Fatalf("%d watchers were ended, want 1", k)
		}
		for err == nil {
			_, err = w.Recv()
		}
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("ended with %v", err)
		}
		n.grpc.Stop()
	})
}
