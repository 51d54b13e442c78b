package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/scaler"
)

// hearing is a scaler that counts the trainers that wait.
type hearing struct {
	pb.UnimplementedFeedServer
	calls atomic.Int32
	real  *scaler.Scaler
	addr  string
}

func (h *hearing) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	h.calls.Add(1)
	return h.real.Open(ctx, r)
}

// listenAsScaler has a scaler listen.
func listenAsScaler(t *testing.T) *hearing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, g := &hearing{real: scaler.New(scaler.Options{}), addr: l.Addr().String()}, grpc.NewServer()
	pb.RegisterFeedServer(g, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return h
}

// Each scaler that a name stands for hears of a trainer that waits: KEDA asks any one of them. Those that the name no
// longer stands for are let go.
func TestAllScalersAreTold(t *testing.T) {
	a, b := listenAsScaler(t), listenAsScaler(t)
	addrs, lookup := []string{a.addr, b.addr}, error(nil)
	s := &scalers{
		name: "scalers", options: node.DialOptions{Insecure: true}, open: map[string]node.Node{},
		list: func(context.Context) ([]string, error) { return addrs, lookup },
	}
	tell := func(wantA, wantB int32, want string) {
		t.Helper()
		if err := s.Tell(t.Context(), &pb.OpenRequest{Job: "x"}); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if gotA, gotB := a.calls.Load(), b.calls.Load(); gotA != wantA || gotB != wantB {
			t.Errorf("%d and %d calls, want %d and %d", gotA, gotB, wantA, wantB)
		}
	}
	tell(1, 1, "")
	tell(2, 2, "")
	addrs = addrs[1:]
	tell(2, 3, "")
	if len(s.open) != 1 {
		t.Errorf("%d connections", len(s.open))
	}
	lookup = errors.New("no such host")
	tell(2, 3, "FEEDWATER_SCALER=scalers: no such host")
	addrs, lookup = []string{a.addr, "127.0.0.1:1"}, nil
	tell(3, 3, "") // one has heard
	addrs = addrs[1:]
	tell(3, 3, "connection refused")
	addrs = nil
	tell(3, 3, "no address")
	if err := s.Close(); err != nil || len(s.open) != 0 {
		t.Errorf("%v, %d connections", err, len(s.open))
	}
}

func TestScalerOfTheEnvironment(t *testing.T) {
	plan := agent.Plan{Nodes: []string{"dns:nodes:7070"}}
	for addr, want := range map[string]string{"localhost:7072": "127.0.0.1:7072", "127.0.0.1:7072": "127.0.0.1:7072", "[::1]:7072": "[::1]:7072"} {
		t.Setenv(scalerEnv, addr)
		s, err := scalerOf(plan, node.DialOptions{Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.(*scalers).list(t.Context()); err != nil || !slices.Contains(got, want) {
			t.Errorf("%s stands for %v, %v", addr, got, err)
		}
		_ = s.Close()
	}
	t.Setenv(scalerEnv, "scaler:7072")
	if _, err := scalerOf(plan, node.DialOptions{}); err == nil {
		t.Error("another machine is reached unencrypted")
	}
	for _, none := range []struct {
		addr string
		plan agent.Plan
	}{{"", plan}, {"scaler:7072", agent.Plan{}}} {
		t.Setenv(scalerEnv, none.addr)
		if s, err := scalerOf(none.plan, node.DialOptions{Insecure: true}); s != nil || err != nil {
			t.Errorf("%v, %v", s, err)
		}
	}
}
