package client_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// slowPair are two nodes of the laws alone that take a while for a sample, and a fleet of them that knows.
func slowPair(t *testing.T, sample time.Duration) (*crowd, *client.Fleet) {
	t.Helper()
	c := manyNodes(t, 2)
	c.sample = sample
	f, err := client.New(c.options(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, n := range c.all() {
			n.set(0, 0)
		}
		f.Close()
		time.Sleep(time.Minute) // what nodes were at ends
	})
	time.Sleep(time.Second) // it has both
	for i := range uint64(6) {
		wantOf(f, 1000+i, time.Hour)
	}
	time.Sleep(time.Minute)
	return c, f
}

// wantOf asks for the batch at a position, and tells when it came.
func wantOf(f *client.Fleet, position uint64, due time.Duration) <-chan time.Time {
	came := make(chan time.Time, 1)
	f.Want(&client.Want{
		Name: rangeOf(0, position, crowdBatch), Request: batch.Request{Dst: make([]byte, room), Due: time.Now().Add(due)}, Spare: func(n int) []byte { return make([]byte, n) }, Done: func(client.Result) { came <- time.Now() },
	})
	return came
}

// A batch that its node will come to too late goes to another one at once, though that one is full of what is needed
// later.
func TestFullNodeTakesAMovedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := slowPair(t, time.Second) // a batch takes 8 s
		for i := range uint64(5) {       // of the six that both take
			wantOf(f, 100+i, time.Hour)
		}
		time.Sleep(500 * time.Millisecond)
		const urgent = 1
		began := time.Now()
		came := wantOf(f, urgent, 18*time.Second)
		synctest.Wait()
		for i := range uint64(5) {
			wantOf(f, 200+i, time.Hour)
		}
		for _, n := range c.all() {
			if n.has(urgent) {
				n.set(0, time.Hour)
			}
		}
		if took := (<-came).Sub(began); took > 12*time.Second {
			t.Errorf("it came after %s: it waited until the other node had room", took)
		}
		if moves := f.Effort().Moves; moves != 1 {
			t.Errorf("%d moves", moves)
		}
	})
}

// Full nodes are not promised one batch after the other: what is taken from a node has another before the next is.
func TestFullNodeIsPromisedOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := slowPair(t, time.Second)
		for i := range uint64(2) {
			wantOf(f, 100+i, time.Hour)
		}
		time.Sleep(500 * time.Millisecond)
		for i, due := range []time.Duration{38, 30, 30, 38} { // the first and the last go to one node
			wantOf(f, uint64(i), due*time.Second)
			synctest.Wait()
		}
		for i := range uint64(5) {
			wantOf(f, 200+i, time.Hour)
		}
		stuck := c.all()[0]
		if !stuck.has(0) || !stuck.has(3) {
			t.Fatal("they do not")
		}
		stuck.set(0, time.Hour)
		time.Sleep(2 * time.Second)
		if moves := f.Effort().Moves; moves != 1 {
			t.Errorf("%d batches were taken from a node for one that has room for one", moves)
		}
	})
}

// What a node has just been sent, and begins at once, does not count twice, nor is it taken away in the middle.
func TestFreshBatchIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := slowPair(t, time.Millisecond)
		quick, other := c.all()[0], c.all()[1]
		quick.set(35, 0)
		other.set(37.5, 0)
		for i := range uint64(6) {
			wantOf(f, 100+i, time.Hour)
		}
		time.Sleep(5 * time.Second)
		wantOf(f, 200, time.Hour)
		synctest.Wait()
		if !quick.has(200) {
			t.Fatal("the quicker node was not asked first")
		}
		began := time.Now()
		time.Sleep(200 * time.Millisecond)
		const due = 500 * time.Millisecond
		came := wantOf(f, 1, due)
		synctest.Wait()
		if !other.has(1) {
			t.Fatal("the idle node was not asked")
		}
		if took := (<-came).Sub(began); took > 200*time.Millisecond+due {
			t.Errorf("it came after %s", took)
		}
		if e := f.Effort(); e.Moves != 0 || e.Hedges != 0 {
			t.Errorf("%d moves and %d hedges of a batch that came in time", e.Moves, e.Hedges)
		}
	})
}

// Hedges are saved up for batches that there is memory for.
func TestHedgesAreNotSpentWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, second = 1000, 1001 // hang, on whichever node has them first
		var hung [2]atomic.Bool
		engine := func() *servertest.Engine {
			return &servertest.Engine{Samples: 1 << 14, Delay: func(n *batch.Name) time.Duration {
				if i := n.Position - first; i < 2 && hung[i].CompareAndSwap(false, true) {
					return time.Hour
				}
				return 50 * time.Millisecond
			}}
		}
		c := newCluster(t)
		c.start("a", engine(), server.Options{})
		c.start("b", engine(), server.Options{})
		f := c.open(c.options("a", "b"))
		want := func(position uint64, spare bool) <-chan time.Time {
			came := make(chan time.Time, 1)
			w := &client.Want{
				Name: rangeOf(0, position, 8), Request: batch.Request{Dst: make([]byte, room), Due: time.Now().Add(300 * time.Millisecond)},
				Done: func(client.Result) { came <- time.Now() },
			}
			if spare {
				w.Spare = func(n int) []byte { return make([]byte, n) }
			}
			f.Want(w)
			return came
		}
		flow := func(from uint64) { // what comes keeps hedges from being granted because nothing does
			for i := range uint64(20) {
				<-want(from+i, true)
			}
		}
		flow(0)
		want(first, false)
		flow(20)
		began := time.Now()
		came := want(second, true)
		flow(40)
		if took := (<-came).Sub(began); took > 500*time.Millisecond {
			t.Errorf("it came after %s", took)
		}
		f.Close()
	})
}
