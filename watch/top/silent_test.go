package top

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// standing is a node that tells its state, but not to calls that were open when it stood still.
type standing struct {
	pb.UnimplementedFeedServer
	began time.Time
	still atomic.Bool
}

func (n *standing) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	for !n.still.Load() {
		if err := stream.Send(&pb.WatchResponse{
			Process: &pb.Process{Kind: "node", Host: "cpu-1", Uptime: durationpb.New(time.Since(n.began))},
			Nodes:   []*pb.NodeStatus{{State: "ready"}},
		}); err != nil {
			return err
		}
		select {
		case <-time.After(r.Interval.AsDuration()):
		case <-stream.Context().Done():
			return nil
		}
	}
	<-stream.Context().Done()
	return nil
}

// A node that stands still, or whose connection died unnoticed, is shown as silent and for how long, and is ready again
// when it answers.
func TestNodeThatStandsStillIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &standing{began: time.Now()}
		g, l := grpc.NewServer(grpc.WaitForHandlers(true)), bufconn.Listen(1<<16)
		pb.RegisterFeedServer(g, n)
		go func() { _ = g.Serve(l) }()
		defer g.Stop()
		dial := func(string) ([]grpc.DialOption, error) {
			return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })}, nil
		}
		p := NewPoller(Options{Hosts: func() []string { return []string{"cpu-1:7070"} }, Interval: time.Second, Dial: dial})
		p.Start()
		defer p.Close()
		look := func(state, says string) {
			t.Helper()
			got := p.Overview(time.Now())
			if len(got.Nodes) != 1 || got.Nodes[0].State != state || !strings.Contains(got.Nodes[0].Error, says) || (len(got.Processes) == 1) != (state == "ready") || len(got.Errors) > 0 {
				t.Errorf("want %s %q: nodes %v, processes %v, errors %v", state, says, got.Nodes, got.Processes, got.Errors)
			}
		}
		time.Sleep(10300 * time.Millisecond)
		look("ready", "")
		n.still.Store(true)
		time.Sleep(17 * time.Second)
		look("silent", "silent for 17s")
		time.Sleep(time.Minute)
		look("silent", "silent for 1m17s")
		n.still.Store(false)
		time.Sleep(20 * time.Second)
		look("ready", "")
	})
}
