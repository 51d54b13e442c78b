package server_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// insiders is a node with two identities: "job", who shows secretA, and "insider", who shows secretB and counts a
// twentieth.
func insiders(t *testing.T, e *servertest.Engine, o server.Options) *node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("job "+secretA+"\ninsider "+secretB+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := admission.ReadTokens(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Access = admission.Access{Tokens: tokens, Rules: map[string]admission.Rule{
		"job": {Roots: []string{"photos"}}, "insider": {Roots: []string{"photos"}, Weight: 0.05, WantsPerSecond: 500},
	}}
	return newNode(t, e, o)
}

// begun is a stream of whoever shows the secret.
func begun(n *node, c *grpc.ClientConn, secret, job string) pb.Feed_FetchClient {
	n.t.Helper()
	ctx := metadata.AppendToOutgoingContext(n.t.Context(), "authorization", "Bearer "+secret)
	s, err := pb.NewFeedClient(c).Fetch(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := s.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: plan, Job: job}}}); err != nil {
		n.t.Fatal(err)
	}
	return s
}

// flood sends requests on a stream, so many times, as fast as they are taken, and reads no answer.
func flood(s pb.Feed_FetchClient, times int, requests func(id uint64) []*pb.FetchRequest) {
	go func() {
		for {
			if _, err := s.Recv(); err != nil {
				return
			}
		}
	}()
	go func() {
		for id := range times {
			for _, r := range requests(uint64(id + 1)) {
				if s.Send(r) != nil {
					return
				}
			}
		}
	}()
}

// share is what a job that holds four wants of 16 samples gets of the next 1000 that a node makes. It asks again when
// told to.
func share(n *node) float64 {
	n.t.Helper()
	s := begun(n, n.conn(), secretA, "beside")
	before, got := n.engine.SamplesMade(), 0
	id := uint64(0)
	ask := func() {
		id++
		_ = s.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: id, Name: rangeOf(0, 16*id, 16), Due: durationpb.New(10 * time.Millisecond)}}})
	}
	for range 4 {
		ask()
	}
	for n.engine.SamplesMade() < before+1000 {
		r, err := s.Recv()
		switch {
		case err != nil:
			n.t.Fatal(err)
		case r.Failure != nil:
			time.Sleep(r.Failure.RetryAfter.AsDuration())
			ask()
		case r.Id > 0 && r.Offset+uint64(len(r.Data)) == r.Size:
			got += 16
			ask()
		}
	}
	return float64(got) / float64(n.engine.SamplesMade()-before)
}

// Whatever somebody of little weight asks for, and however much, a job beside him gets what its weight says.
func TestInsiders(t *testing.T) {
	for _, c := range []struct {
		name     string
		count    uint32 // samples of a want
		streams  int
		jobs     bool // a job for each
		requests func(want *pb.FetchRequest, id uint64) []*pb.FetchRequest
	}{
		{"wants", 4, 8, false, nil},
		{"wants of one sample", 1, 8, false, nil},
		{"wants of many jobs", 4, 80, true, nil},
		{"wants of the largest batch", 40_000, 8, false, nil},
		{"wants that are withdrawn", 4, 8, false, func(want *pb.FetchRequest, id uint64) []*pb.FetchRequest {
			return []*pb.FetchRequest{want, cancelOf(id)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &servertest.Engine{Samples: 1 << 20, Cores: 4, SampleTime: 10 * time.Millisecond}
				n := insiders(t, e, server.Options{NodeBytes: 16 << 20, HostShare: unbounded})
				conn := n.conn()
				for k := range c.streams {
					job := "attack"
					if c.jobs {
						job += strconv.Itoa(k)
					}
					flood(begun(n, conn, secretB, job), 10_000/c.streams, func(id uint64) []*pb.FetchRequest {
						want := wantOf(id, rangeOf(1, id*uint64(c.count)+uint64(k), c.count))
						if c.requests == nil {
							return []*pb.FetchRequest{want}
						}
						return c.requests(want, id)
					})
				}
				time.Sleep(time.Second)
				if got, due := share(n), 1/1.05; got < 0.9*due {
					t.Errorf("the job got %.3f of what the node made, of %.3f that are due", got, due)
				}
			})
		})
	}
}

// Wants that come to nothing are paid for by the address that sends them.
func TestRefusedWantsArePaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{Delay: hang}, server.Options{HostShare: 0.001, StreamWants: 1})
		s := begun(n, n.conn(), "", "attack")
		flood(s, 100_000, func(id uint64) []*pb.FetchRequest { return []*pb.FetchRequest{wantOf(id, rangeOf(0, id, 1))} })
		time.Sleep(time.Minute)
		const paid = (640_000 + 60_000) / 35 // µs of a core: what an address has at once, and a thousandth of a minute, by what a want costs
		minute := n.counted("failures_total")
		time.Sleep(10 * time.Second)
		if later := n.counted("failures_total"); minute > paid || later == minute {
			t.Errorf("%d wants were refused in a minute, of %d that are paid for, and %d in the next 10 s", minute, paid, later-minute)
		}
	})
}
