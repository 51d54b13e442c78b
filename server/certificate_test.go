package server_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// What was let in by a CA stays connected when that CA is taken away, but does nothing new on its connection.
func TestRemovedCA(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{})
	trainer := g.ca.Issue("trainer", time.Hour)
	feed := pb.NewFeedClient(g.dial(shown{pair: &trainer}))
	calls := map[string]func() error{
		"open": func() error {
			_, err := feed.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
			return err
		},
		"replay": func() error {
			_, err := feed.Replay(t.Context(), &pb.ReplayRequest{Plan: plan, Name: rangeOf(0, 0, 1)})
			return err
		},
		"fetch": func() error {
			s, err := feed.Fetch(t.Context())
			if err == nil {
				err = firstBatch(t, s)
			}
			return err
		},
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	had := []byte(read(t, g.ca.File))
	if err := os.WriteFile(g.ca.File, []byte(read(t, servertest.NewAuthority(t, "other").File)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if err := call(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), `the client certificate of "trainer" is good no longer`) {
			t.Errorf("%s after its CA was taken away: %v", name, err)
		}
	}
	if err := os.WriteFile(g.ca.File, append(had, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := calls["open"](); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}

// firstBatch wants a batch and waits for it.
func firstBatch(t *testing.T, s grpc.BidiStreamingClient[pb.FetchRequest, pb.FetchResponse]) error {
	t.Helper()
	_ = s.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: plan}}})
	_ = s.Send(&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: &pb.Want{Id: 1, Name: rangeOf(0, 0, 1)}}})
	_ = s.CloseSend()
	for {
		r, err := s.Recv()
		if err != nil || r.Id == 1 {
			return err
		}
	}
}
