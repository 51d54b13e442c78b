package client_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// listener is a node that makes nothing and passes on the pulses that it is told.
type listener struct {
	pb.UnimplementedFeedServer
	pulses chan *pb.Pulse
	gate   chan struct{} // requests are not read until it closes
}

func (l *listener) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	label := &pb.Field{Name: "label", Dtype: "int64"}
	return &pb.OpenResponse{Plan: "{}", PlanHash: "p", Numerics: "n", Fingerprint: "f", Samples: 1, Workers: 1, Fields: []*pb.Field{label}, Protocol: pb.Protocol}, nil
}

func (l *listener) Fetch(rpc grpc.BidiStreamingServer[pb.FetchRequest, pb.FetchResponse]) error {
	select {
	case <-l.gate:
	case <-rpc.Context().Done():
	}
	for {
		r, err := rpc.Recv()
		if err != nil {
			return nil //nolint:nilerr // the trainer is done
		}
		if p := r.GetPulse(); p != nil {
			l.pulses <- p
		}
	}
}

func (l *listener) serve(t *testing.T) client.Options {
	b := bufconn.Listen(4 << 10)
	g := grpc.NewServer()
	pb.RegisterFeedServer(g, l)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(b)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-served
	})
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return b.DialContext(ctx) }
	return client.Options{Plan: plan, Nodes: []string{"a"}, Dialing: node.DialOptions{Connect: dial}}
}

// Every step reaches the node, however slowly it reads, as long as it is not far behind; then the latest ones do.
func TestPulseReachesNodes(t *testing.T) {
	l := &listener{pulses: make(chan *pb.Pulse, 1<<14), gate: make(chan struct{})}
	f, err := client.New(l.serve(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	newCluster(t).await(f, 1)
	const steps = 20_000
	for i := range uint64(steps) {
		f.Pulse(&pb.Pulse{Rank: 3, World: 4, Steps: []*pb.Step{{Number: i, Step: 1}}, Ready: uint32(i)})
	}
	close(l.gate)
	last, told := int64(-1), 0
	for last < steps-1 {
		p := <-l.pulses
		if p.Rank != 3 || p.World != 4 || len(p.Steps) == 0 {
			t.Fatalf("pulse %v", p)
		}
		for _, s := range p.Steps {
			if int64(s.Number) <= last {
				t.Fatalf("step %d after %d", s.Number, last)
			}
			last = int64(s.Number)
			told++
		}
	}
	if told < 512 {
		t.Errorf("%d steps were told", told)
	}
}
