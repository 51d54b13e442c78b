package client_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// pass runs one epoch and returns how long it took and which node made how many batches.
func pass(t *testing.T, l *loader.Loader) (took time.Duration, from map[string]int) {
	t.Helper()
	from = map[string]int{}
	began := time.Now()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		from[b.Node]++
		b.Release()
	}
	return time.Since(began), from
}

// Nodes of different speed work together at the sum of their speeds, and a slow one does not hold up the others.
func TestUnequalNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		pace := map[string]time.Duration{"fast": 20 * time.Millisecond, "slow": 200 * time.Millisecond}
		for addr, d := range pace {
			c.start(addr, &servertest.Engine{Samples: 6000, Delay: func(*batch.Name) time.Duration { return d }}, server.Options{})
		}
		l := newLoader(t, loader.Options{Options: c.options("fast", "slow"), Batch: 10, Window: 60})
		pass(t, l) // while the speeds are learned
		took, from := pass(t, l)
		// Each node makes the three batches that it holds at once.
		ideal := time.Duration(float64(600) / (3/pace["fast"].Seconds() + 3/pace["slow"].Seconds()) * float64(time.Second))
		if took > ideal*11/10 {
			t.Errorf("took %s, the nodes together need %s (%v)", took, ideal, from)
		}
		if from["slow"] < 30 || from["slow"] > 70 {
			t.Errorf("batches by node: %v", from)
		}
		l.Close()
	})
}

// Equal nodes share the work equally, and one that joins late gets its part.
func TestEqualNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		engine := func() *servertest.Engine {
			return &servertest.Engine{Samples: 6000, Delay: func(*batch.Name) time.Duration { return 50 * time.Millisecond }}
		}
		c.start("a", engine(), server.Options{})
		c.start("b", engine(), server.Options{})
		l := newLoader(t, loader.Options{Options: c.options("a", "b", "late"), Batch: 10, Window: 30})
		took, from := pass(t, l)
		if took > 5500*time.Millisecond || from["a"] < 250 || from["b"] < 250 {
			t.Errorf("took %s: %v", took, from)
		}
		c.start("late", engine(), server.Options{})
		time.Sleep(10 * time.Second)
		if took, from = pass(t, l); took > 3900*time.Millisecond || from["late"] < 150 {
			t.Errorf("took %s: %v", took, from)
		}
		l.Close()
	})
}

// What is due first is asked for first.
func TestDueComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", slowly(time.Second), server.Options{}) // takes three wants at a time
		f := c.open(c.options("a"))
		order := make(chan int, 9)
		want := func(i int, due time.Time) {
			f.Want(&client.Want{Name: rangeOf(0, uint64(i), 8), Request: batch.Request{Dst: make([]byte, room), Due: due}, Done: func(client.Result) { order <- i }})
		}
		for i := range 3 {
			want(i, time.Time{})
		}
		time.Sleep(time.Millisecond)
		for i := 3; i < 9; i++ {
			want(i, time.Now().Add(-time.Duration(i)*time.Minute))
		}
		for k := range 9 {
			if i := <-order; k >= 3 && (k < 6) != (i >= 6) {
				t.Errorf("want %d came at place %d", i, k)
			}
		}
		f.Close()
	})
}

// A batch that hangs is made elsewhere in time, though no node ever has room because more is wanted than they make.
func TestFullNodesRescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		const hangs = 100
		var hung atomic.Bool
		engine := func() *servertest.Engine {
			return &servertest.Engine{Delay: func(n *batch.Name) time.Duration {
				if n.Position == hangs && hung.CompareAndSwap(false, true) {
					return time.Hour
				}
				return 300 * time.Millisecond
			}}
		}
		c.start("a", engine(), server.Options{})
		c.start("b", engine(), server.Options{})
		f := c.open(c.options("a", "b"))
		came := make(chan uint64, 300)
		want := func(i uint64, due time.Duration) {
			f.Want(&client.Want{
				Name: rangeOf(0, i, 8), Request: batch.Request{Dst: make([]byte, room), Due: time.Now().Add(due)}, Spare: func(n int) []byte { return make([]byte, n) }, Done: func(client.Result) { came <- i },
			})
		}
		for i := range uint64(20) { // what a batch takes is learned
			want(i, time.Minute)
		}
		for range 20 {
			<-came
		}
		const due = 1500 * time.Millisecond
		began := time.Now()
		want(hangs, due)
		for i := range uint64(200) {
			want(hangs+1+i, time.Minute)
		}
		for waiting := 200; ; waiting-- {
			if <-came != hangs {
				continue
			}
			if took := time.Since(began); took > due || waiting == 0 {
				t.Errorf("it came after %s, when %d others waited", took, waiting)
			}
			break
		}
		f.Close()
	})
}
