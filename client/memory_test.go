package client_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// lent is memory that is lent to a want and poisoned as soon as the want has its answer.
type lent struct {
	want    client.Want
	answers int // guarded by the test's mutex
}

const poison = 0xa5

// poisoned is as many poisoned bytes as a test lends.
var poisoned = bytes.Repeat([]byte{poison}, 300<<10)

// poison writes all of the memory, in one copy: the race detector takes that for a write of each byte, and a loop over
// them takes minutes there.
func (l *lent) poison() { copy(l.want.Dst, poisoned) }

// spoilt is the first byte of the memory that is not as poison left it, or -1.
func (l *lent) spoilt() int {
	seen := make([]byte, len(l.want.Dst))
	copy(seen, l.want.Dst) // a read of each byte, for the race detector
	if bytes.Equal(seen, poisoned[:len(seen)]) {
		return -1
	}
	return slices.IndexFunc(seen, func(b byte) bool { return b != poison })
}

// Whatever ends a want, nobody writes its memory afterwards, and it gets exactly one answer: wants that are cancelled,
// overtaken by the fleet's end, or whose node is killed, cut off or frozen.
func TestMemoryIsLeftAlone(t *testing.T) {
	c := newCluster(t)
	engine := func() *servertest.Engine {
		return &servertest.Engine{Height: 128, Width: 128, Delay: func(n *batch.Name) time.Duration { return time.Duration(n.Position%3) * time.Millisecond }}
	}
	nodes := map[string]*servedNode{}
	addrs := []string{"a", "b", "c"}
	for _, addr := range addrs {
		nodes[addr] = c.start(addr, engine(), server.Options{})
	}
	done := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() { disturb(c, nodes, addrs, rand.New(rand.NewPCG(9, 9)), engine, done) })
	var trainers sync.WaitGroup
	for k := range uint64(4) {
		trainers.Go(func() {
			r := rand.New(rand.NewPCG(k, 3))
			for range 25 {
				storm(t, c, addrs, r)
			}
		})
	}
	trainers.Wait()
	close(done)
	faults.Wait()
}

// storm wants some batches, cancels some, and closes the fleet at a random moment.
func storm(t *testing.T, c *cluster, addrs []string, r *rand.Rand) {
	f, err := client.New(c.options(addrs...))
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := f.Open(t.Context()); err != nil {
		t.Error(err)
	}
	var mu sync.Mutex
	slots := make([]*lent, 12)
	for i := range slots {
		s := &lent{}
		slots[i] = s
		s.want = client.Want{Name: rangeOf(0, r.Uint64N(1000), 5), Request: batch.Request{Dst: make([]byte, 300<<10)}}
		s.want.Done = func(result client.Result) {
			if result.Err != nil && !errors.Is(result.Err, node.ErrCancelled) && !errors.Is(result.Err, client.ErrClosed) {
				t.Error(result.Err)
			}
			s.poison()
			mu.Lock()
			defer mu.Unlock()
			s.answers++
		}
		f.Want(&s.want)
	}
	for _, s := range slots {
		for range r.IntN(40) {
			runtime.Gosched()
		}
		if r.IntN(2) == 0 {
			f.Cancel(&s.want)
		}
	}
	f.Close()
	for i, s := range slots {
		if s.answers != 1 {
			t.Errorf("want %d had %d answers", i, s.answers)
		}
		if j := s.spoilt(); j >= 0 {
			t.Errorf("byte %d of want %d was written after its answer", j, i)
		}
	}
}

// Wants that come before Open wait for it; those that come after Close are answered too.
func TestWantsAtTheEdges(t *testing.T) {
	c := newCluster(t)
	c.start("a", &servertest.Engine{}, server.Options{})
	f, err := client.New(c.options("a"))
	if err != nil {
		t.Fatal(err)
	}
	early := make(chan client.Result, 1)
	f.Want(&client.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { early <- r }})
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-early; r.Err != nil {
		t.Errorf("a want before open: %v", r.Err)
	}
	f.Close()
	f.Close()
	if r := ask(f, rangeOf(0, 0, 8), room); !errors.Is(r.Err, client.ErrClosed) {
		t.Errorf("a want after close: %v", r.Err)
	}
	never, err := client.New(c.options("a"))
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan client.Result, 1)
	never.Want(&client.Want{Name: rangeOf(0, 0, 8), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { late <- r }})
	never.Close()
	if r := <-late; !errors.Is(r.Err, client.ErrClosed) {
		t.Errorf("a want of a fleet that was never opened: %v", r.Err)
	}
}

func TestSetNodes(t *testing.T) {
	c := newCluster(t)
	for _, addr := range []string{"a", "b"} {
		c.start(addr, &servertest.Engine{Delay: func(n *batch.Name) time.Duration {
			if addr == "a" && n.Epoch == 1 {
				return time.Hour
			}
			return 0
		}}, server.Options{})
	}
	f := c.open(c.options("a"))
	stuck := make(chan client.Result, 1)
	f.Want(&client.Want{Name: rangeOf(1, 0, 8), Request: batch.Request{Dst: make([]byte, room)}, Done: func(r client.Result) { stuck <- r }})
	if err := f.SetNodes([]string{"b"}); err != nil {
		t.Fatal(err)
	}
	if r := <-stuck; r.Err != nil || r.Node != "b" {
		t.Errorf("%v from %q", r.Err, r.Node)
	}
	c.until("a node that was removed is still there", func() bool { s := f.Status(); return len(s) == 1 && s[0].Addr == "b" })
	if err := f.SetNodes([]string{"b", "a"}); err != nil {
		t.Fatal(err)
	}
	c.await(f, 2)
}
