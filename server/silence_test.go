package server_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// halfOpen is a connection whose other end loses its machine: from lose on nothing comes out of it, and nothing is
// said.
type halfOpen struct {
	net.Conn
	lost, closed chan struct{}
	lose, end    func()
}

func newHalfOpen(c net.Conn) *halfOpen {
	h := &halfOpen{Conn: c, lost: make(chan struct{}), closed: make(chan struct{})}
	h.lose, h.end = sync.OnceFunc(func() { close(h.lost) }), sync.OnceFunc(func() { close(h.closed) })
	return h
}

func (h *halfOpen) Write(b []byte) (int, error) {
	select {
	case <-h.lost:
		return len(b), nil
	default:
		return h.Conn.Write(b)
	}
}

func (h *halfOpen) Close() error {
	h.end()
	return h.Conn.Close()
}

// trainerOf is a stream of the job "run" whose trainer has a revision of the last hop, over a connection of its own.
func (n *node) trainerOf(lastHop uint32) (*trainer, *halfOpen) {
	n.t.Helper()
	var wire *halfOpen
	c, err := grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := n.listener.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			wire = newHalfOpen(conn)
			return wire, nil
		}))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	tr := n.fetch(c)
	about := &pb.Trainer{Units: map[string]uint32{revision.LastHop: lastHop}, Build: "b"}
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: n.open(plan).Plan, Job: "run", Trainer: about}}})
	return tr, wire
}

// made asks for a batch, and returns the error that the stream ends with instead.
func (tr *trainer) made() error {
	tr.want(1, rangeOf(0, 0, 8))
	_, err := tr.next()
	return err
}

func refusedByBuild(err error) bool {
	return status.Code(err) == codes.FailedPrecondition && strings.Contains(err.Error(), "the ranks of a job have to be of one build")
}

// A trainer of another build is refused while the job has one that is there, though it may have nothing to say; and let
// in when that one's machine is gone, of which no connection tells.
func TestTrainersThatAreGoneRefuseNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, &servertest.Engine{}, server.Options{})
		old, wire := n.trainerOf(1)
		if err := old.made(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute) // it asks for nothing
		if other, _ := n.trainerOf(2); !refusedByBuild(other.made()) {
			t.Error("ranks of two builds are in one job")
		}
		wire.lose()
		if other, _ := n.trainerOf(2); !refusedByBuild(other.made()) {
			t.Error("a trainer was given up at once")
		}
		time.Sleep(25 * time.Second)
		restarted, _ := n.trainerOf(2)
		if err := restarted.made(); err != nil {
			t.Fatalf("the restarted trainer is refused for one that is gone: %v", err)
		}
		if err := old.made(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "a trainer of another build has taken over its job") {
			t.Errorf("the stream of the one that is gone: %v", err)
		}
		if again, _ := n.trainerOf(1); !refusedByBuild(again.made()) {
			t.Error("ranks of two builds are in one job, after one of them came back")
		}
		restarted.cancel()
	})
}
