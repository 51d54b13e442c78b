package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// forgotten is a connection that a firewall forgot, once forget is called: what is written goes nowhere, and nothing
// comes.
type forgotten struct {
	net.Conn
	gone, closed chan struct{}
	once         sync.Once
}

func (c *forgotten) Write(b []byte) (int, error) {
	select {
	case <-c.gone:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func (c *forgotten) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.gone:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *forgotten) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// silentNode answers Watch once.
type silentNode struct{ pb.UnimplementedFeedServer }

func (silentNode) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	if err := stream.Send(&pb.WatchResponse{}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// A call on a connection of one's own ends soon after that died unnoticed.
func TestConnectionsOfOnesOwnAreKnownToBeDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := grpc.NewServer(grpc.WaitForHandlers(true)), bufconn.Listen(1<<16)
		pb.RegisterFeedServer(g, silentNode{})
		go func() { _ = g.Serve(l) }()
		defer g.Stop()
		options, err := node.DialOptions{}.GRPC("127.0.0.1:7070")
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := l.DialContext(ctx)
			return &forgotten{Conn: c, gone: gone, closed: make(chan struct{})}, err
		}))
		conn, err := grpc.NewClient("passthrough:///node", options...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stream, err := pb.NewFeedClient(conn).Watch(ctx, &pb.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		close(gone)
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("a connection that died: %v", err)
		}
	})
}
