package server_test

import (
	"context"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

const (
	abusers   = 4    // at once
	unbounded = 1000 // cores for an address: what is tested lies behind that bound
)

// abuses is how many there are of each kind: a tenth of them in the short form, which is for the race detector.
func abuses() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// victim is a stream with more data on its way than any window takes, on a connection of its own.
type victim struct {
	conn   *grpc.ClientConn
	wire   net.Conn
	cancel context.CancelFunc
	stream pb.Feed_FetchClient
}

// attack opens a stream, wants three batches, and reads up to three messages.
func attack(t *testing.T, n *node, text string, r *rand.Rand) *victim {
	v := &victim{}
	var mu sync.Mutex
	var err error
	v.conn, err = grpc.NewClient("passthrough:///node", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := n.listener.DialContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			v.wire = c
			return c, err
		}))
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.cancel = cancel
	if v.stream, err = pb.NewFeedClient(v.conn).Fetch(ctx); err != nil {
		t.Error(err)
	}
	send := func(m *pb.FetchRequest) {
		if err := v.stream.Send(m); err != nil {
			t.Error(err)
		}
	}
	send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, PieceBytes: 1}}})
	for id := range uint64(3) {
		send(wantOf(id+1, rangeOf(0, id, 8)))
	}
	if r.IntN(2) == 0 {
		send(cancelOf(1 + r.Uint64N(3)))
	}
	for range r.IntN(4) {
		if _, err := v.stream.Recv(); err != nil {
			t.Error(err)
		}
	}
	for range r.IntN(50) {
		runtime.Gosched()
	}
	return v
}

func (v *victim) end() {
	v.cancel()
	v.conn.Close()
}

// abuse runs attacks of one kind, some at a time, and sees that the node gets everything back.
func abuse(t *testing.T, finish func(*victim)) {
	n := newNode(t, &servertest.Engine{Height: 64, Width: 64}, server.Options{NodeBytes: 64 << 20, HostShare: unbounded})
	text := n.open(plan).Plan
	var wg sync.WaitGroup
	for k := range abusers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 1))
			for range abuses() / abusers {
				v := attack(t, n, text, r)
				finish(v)
				v.end()
			}
		})
	}
	wg.Wait()
	n.settled()
	until(t, "slots are kept though no stream is left", func() bool { used, _ := n.Memory(); return used == 0 })
	if n.Streams() != 0 || n.engine.Making() != 0 {
		t.Errorf("%d streams, %d wants are left", n.Streams(), n.engine.Making())
	}
}

func TestCancelledStreams(t *testing.T) {
	t.Parallel()
	abuse(t, func(v *victim) { v.cancel() })
}

func TestClosedConnections(t *testing.T) {
	t.Parallel()
	abuse(t, func(v *victim) { v.conn.Close() })
}

func TestDyingConnections(t *testing.T) {
	t.Parallel()
	abuse(t, func(v *victim) { v.wire.Close() })
}

// Trainers that stop reading, a few at a time, on one connection that lives on.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	n := newNode(t, &servertest.Engine{Height: 64, Width: 64}, server.Options{NodeBytes: 64 << 20, HostShare: unbounded})
	text := n.open(plan).Plan
	c := n.conn()
	var wg sync.WaitGroup
	for range abusers {
		wg.Go(func() {
			for range abuses() / abusers {
				tr := n.fetch(c)
				tr.start(text)
				tr.want(1, rangeOf(0, 0, 8))
				tr.want(2, rangeOf(0, 0, 8))
				tr.piece()
				tr.cancel()
			}
		})
	}
	wg.Wait()
	n.settled()
	tr := n.fetch(c)
	tr.start(text)
	tr.want(1, rangeOf(0, 0, 8))
	if a := tr.mustNext(); a.failure != nil {
		t.Error(a.failure)
	}
	tr.cancel()
}

// Trainers that take nothing, until the node ends their streams.
func TestTrainersThatStall(t *testing.T) {
	t.Parallel()
	n := newNode(t, &servertest.Engine{Height: 64, Width: 64}, server.Options{NodeBytes: 128 << 20, HostShare: unbounded, StallTimeout: 50 * time.Millisecond})
	text := n.open(plan).Plan
	const wave = 100
	for done := wave; done <= abuses(); done += wave {
		c := n.conn(grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<20)) // that does not grow
		trainers := make([]*trainer, wave)
		for i := range trainers {
			trainers[i] = n.fetch(c)
			trainers[i].start(text)
			for id := range uint64(4) {
				trainers[i].want(id+1, rangeOf(0, 0, 8))
			}
		}
		until(t, "streams are not ended", func() bool { return n.counted("stalled_streams_total") == done })
		for _, tr := range trainers {
			var err error
			for err == nil {
				_, err = tr.next()
			}
			if code, reason := reasonOf(err); code != codes.DeadlineExceeded || reason != pb.Reason_REASON_STALLED.String() {
				t.Fatalf("ended with %v", err)
			}
		}
		c.Close()
	}
	n.settled()
	until(t, "slots are kept though no stream is left", func() bool { used, _ := n.Memory(); return used == 0 })
	if n.Streams() != 0 || n.engine.Making() != 0 {
		t.Errorf("%d streams, %d wants are left", n.Streams(), n.engine.Making())
	}
}

// The node itself stops, without waiting for anybody.
func TestStoppedServers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var wg sync.WaitGroup
	for k := range abusers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 2))
			for range abuses() / abusers {
				n := newNode(t, &servertest.Engine{Height: 64, Width: 64}, server.Options{Roots: map[string]string{"photos": root}})
				v := attack(t, n, n.open(plan).Plan, r)
				n.grpc.Stop()
				n.Close()
				n.engine.Close()
				v.end()
				until(t, "slots are lost", func() bool {
					used, lent := n.Memory()
					if lent > 0 {
						runtime.GC()
					}
					return lent == 0 && used == 0
				})
			}
		})
	}
	wg.Wait()
}
