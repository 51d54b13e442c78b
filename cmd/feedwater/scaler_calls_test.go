package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// hearing is a scaler that counts the trainers that wait.
type hearing struct {
	pb.UnimplementedFeedServer
	calls atomic.Int32
}

func (h *hearing) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	h.calls.Add(1)
	return nil, status.Error(codes.Unavailable, "told")
}

// listenAs has a scaler listen at an address.
func listenAs(t *testing.T, addr string) (*hearing, int) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	h, g := &hearing{}, grpc.NewServer()
	pb.RegisterFeedServer(g, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return h, l.Addr().(*net.TCPAddr).Port
}

// Each scaler that a name stands for hears of a trainer that waits: KEDA asks any one of them. Those that the name no
// longer stands for are let go.
func TestAllScalersAreTold(t *testing.T) {
	a, port := listenAs(t, "127.0.0.1:0")
	b, _ := listenAs(t, net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
	hosts, err := []string{"127.0.0.1", "127.0.0.2"}, error(nil)
	s := &scalers{
		host: "scalers", port: strconv.Itoa(port), open: map[string]node.Node{},
		resolve: func(context.Context, string) ([]string, error) { return hosts, err },
	}
	open := func(wantA, wantB int32) {
		t.Helper()
		_, _ = s.Open(t.Context(), &pb.OpenRequest{Job: "x"})
		if gotA, gotB := a.calls.Load(), b.calls.Load(); gotA != wantA || gotB != wantB {
			t.Errorf("%d and %d calls, want %d and %d", gotA, gotB, wantA, wantB)
		}
	}
	open(1, 1)
	open(2, 2)
	hosts = hosts[1:]
	open(2, 3)
	if len(s.open) != 1 {
		t.Errorf("%d connections", len(s.open))
	}
	err = errors.New("no such host")
	open(2, 3)
	hosts, err = []string{"127.0.0.1", "127.0.0.2"}, nil
	open(3, 4)
	if err := s.Close(); err != nil || len(s.open) != 0 {
		t.Errorf("%v, %d connections", err, len(s.open))
	}
}

func TestScalerOfTheEnvironment(t *testing.T) {
	plan := agent.Plan{Nodes: []string{"dns:nodes:7070"}}
	for addr, all := range map[string]bool{"scaler:7072": true, "127.0.0.1:7072": false, "[::1]:7072": false} {
		t.Setenv(scalerEnv, addr)
		s, err := scalerOf(plan, node.DialOptions{Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := s.(*scalers); got != all {
			t.Errorf("%s is asked as %T", addr, s)
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
