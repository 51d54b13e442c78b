package server_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// keep holds so many wants of 16 samples at a node, each said to be due after a while, until the time is over. It
// returns how many came.
func keep(n *node, secret, job string, wants int, due, until time.Duration) (batches int) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(n.t.Context(), "authorization", "Bearer "+secret), until)
	defer cancel()
	stream, err := pb.NewFeedClient(n.conn()).Fetch(ctx)
	if err != nil {
		n.t.Error(err)
		return 0
	}
	_ = stream.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: plan, Job: job}}})
	id := uint64(0)
	ask := func() {
		id++
		w := &pb.Want{Id: id, Name: rangeOf(0, 16*id, 16), Due: durationpb.New(due)}
		_ = stream.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: w}})
	}
	for range wants {
		ask()
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return batches
		}
		if r.Id > 0 && r.Offset+uint64(len(r.Data)) == r.Size {
			batches++
			ask()
		}
	}
}

// Two jobs that want more than a node makes have it in the ratio of their identities' weights, however many wants each
// holds and whenever it says that they are due.
func TestWeightsOfIdentities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("vision "+secretA+"\nother "+secretB+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := admission.ReadTokens(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	access := admission.Access{Tokens: tokens, Rules: map[string]admission.Rule{"vision": {Roots: []string{"*"}, Weight: 3}, "other": {Roots: []string{"*"}}}}
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Samples: 1 << 20, Cores: 4, SampleTime: 11 * time.Millisecond}
		n := newNode(t, e, server.Options{Access: access})
		const seconds = 60
		counts := make(chan int, 1)
		go func() { counts <- keep(n, secretB, "a", 40, 0, seconds*time.Second) }()
		vision := keep(n, secretA, "b", 8, 10*time.Millisecond, seconds*time.Second)
		other := <-counts
		if ratio := float64(vision) / float64(other); math.Abs(ratio/3-1) > 0.05 {
			t.Errorf("weights 3:1 gave %d and %d batches, %.2f:1", vision, other, ratio)
		}
		if made := float64(16*(vision+other)) * 0.011 / 4 / seconds; made < 0.97 {
			t.Errorf("the node was busy for %.2f of the time", made)
		}
	})
}

// A job that says that all is due at once takes no more than its share from one that is honest about what it needs
// next.
func TestLyingDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Samples: 1 << 20, Cores: 4, SampleTime: 11 * time.Millisecond}
		n := newNode(t, e, server.Options{})
		honest := make(chan int, 1)
		go func() { honest <- keep(n, "", "honest", 4, 50*time.Millisecond, 30*time.Second) }()
		liar := keep(n, "", "liar", 200, 0, 30*time.Second)
		if h := <-honest; math.Abs(float64(h)/float64(liar)-1) > 0.05 {
			t.Errorf("%d batches for the honest one, %d for the liar", h, liar)
		}
	})
}

// Of two ranks of a job the one that is behind is served first, whichever asked first and says that it needs it sooner.
func TestTheRankThatIsBehindGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Cores: 1, SampleTime: 10 * time.Millisecond}, server.Options{})
		ahead, behind := n.started(), n.started()
		want := func(tr *trainer, id, step uint64, due time.Duration) {
			tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: rangeOf(0, 10*step, 10), Step: step, Due: durationpb.New(due)}}})
			synctest.Wait()
		}
		want(ahead, 1, 1, 0) // in the making
		want(ahead, 2, 9, 0)
		want(behind, 1, 2, time.Minute)
		began := time.Now()
		behind.mustNext()
		if took := time.Since(began); took > 205*time.Millisecond {
			t.Errorf("step 2 took %s beside step 9", took)
		}
	})
}

// A header tells how long its want queued, so that trainers do not take queueing for slowness.
func TestQueuedSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Cores: 1, SampleTime: 10 * time.Millisecond}
		n := newNode(t, e, server.Options{})
		tr := n.started()
		tr.want(1, rangeOf(0, 0, 20))
		synctest.Wait()
		tr.want(2, rangeOf(0, 20, 5))
		for _, want := range []float64{0, 0.2} {
			if h := tr.mustNext().header; math.Abs(h.QueuedSeconds-want) > 1e-3 {
				t.Errorf("queued %v s, want %v", h.QueuedSeconds, want)
			}
		}
	})
}
