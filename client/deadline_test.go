package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A node that takes the very first batches and never ends one, while nothing is known of how long they take: the
// deadline brings them.
func TestDeadlineBeforeAnythingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		hanging := &servertest.Engine{Delay: func(*batch.Name) time.Duration { return 1000 * time.Hour }}
		c.start("hangs", hanging, server.Options{})
		c.start("well", slowly(10*time.Millisecond), server.Options{})
		f := c.open(c.options("hangs", "well"))
		done := make(chan client.Result, 6)
		for i := range uint64(6) {
			f.Want(&client.Want{Name: rangeOf(0, i, 8), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { done <- r }})
		}
		began := time.Now()
		for range 6 {
			if r := <-done; r.Err != nil || r.Node != "well" {
				t.Errorf("%v from %s", r.Err, r.Node)
			}
		}
		time.Sleep(time.Second)
		if e := f.Effort(); e.Missed == 0 {
			t.Errorf("no deadline was missed: %+v", e)
		}
		if took := time.Since(began); took > 122*time.Second {
			t.Errorf("it took %s", took)
		}
		f.Close()
	})
}

// slowToLeave is a node whose batches never come, and that writes their memory for a second more when they are
// cancelled.
type slowToLeave struct {
	node.Node
	writes sync.WaitGroup

	mu   sync.Mutex
	sent int
}

func (n *slowToLeave) Addr() string { return "slow" }

func (n *slowToLeave) Fetch(_ context.Context, _ *pb.Start, _ func(*pb.Notice)) (node.Stream, error) {
	return &leavingStream{node: n, ended: make(chan struct{})}, nil
}

type leavingStream struct {
	node  *slowToLeave
	ended chan struct{}
	once  sync.Once
}

func (s *leavingStream) Send(*node.Attempt) {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.node.sent++
}

func (s *leavingStream) Cancel(a *node.Attempt) {
	s.node.writes.Go(func() {
		time.Sleep(time.Second)
		for i := range a.Dst {
			a.Dst[i] = 1
		}
		a.Done(node.Answer{Err: node.ErrCancelled})
	})
}

func (s *leavingStream) Pulse(*pb.Pulse)        {}
func (s *leavingStream) Heard() time.Time       { return time.Now() }
func (s *leavingStream) Ended() <-chan struct{} { return s.ended }
func (s *leavingStream) Err() error             { return nil }
func (s *leavingStream) Close() {
	s.once.Do(func() { close(s.ended) })
	s.node.writes.Wait()
}

// A want that is taken from a node is sent to another, with the same memory, only when that node has let go of it.
func TestMemoryIsFreeOnlyWhenTheLoserHasLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("well", slowly(10*time.Millisecond), server.Options{})
		well, err := node.Dial("well", c.options().Dialing)
		if err != nil {
			t.Fatal(err)
		}
		slow := &slowToLeave{Node: well}
		o := c.options("well")
		o.Local = slow
		f := c.open(o)
		time.Sleep(time.Second)
		for i := range uint64(20) {
			dst, spare := make([]byte, room), make([]byte, room)
			done := make(chan client.Result, 1)
			f.Want(&client.Want{
				Name: rangeOf(0, i, 8), Request: batch.Request{Dst: dst}, Spare: func(int) []byte { return spare },
				Done: func(r client.Result) {
					clear(dst)
					clear(spare)
					done <- r
				},
			})
			if r := <-done; r.Err != nil {
				t.Fatal(r.Err)
			}
			time.Sleep(2 * time.Second)
			for k := range dst {
				if dst[k] != 0 || spare[k] != 0 {
					t.Fatalf("batch %d: memory was written after the answer", i)
				}
			}
		}
		slow.mu.Lock()
		defer slow.mu.Unlock()
		if slow.sent == 0 {
			t.Error("the node was never asked")
		}
		f.Close()
	})
}
