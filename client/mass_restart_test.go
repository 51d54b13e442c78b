package client_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// herd is many trainers on a few nodes.
type herd struct {
	*cluster
	addrs   []string
	loaders []*loader.Loader
	taken   []int // batches, by trainer
	running sync.WaitGroup

	mu    sync.Mutex
	dials []time.Time
}

func newHerd(t *testing.T, trainers, nodes int) *herd {
	h := &herd{cluster: newCluster(t), taken: make([]int, trainers)}
	for i := range nodes {
		h.addrs = append(h.addrs, fmt.Sprint("node", i))
	}
	h.raise()
	o := h.options(h.addrs...)
	o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
		h.mu.Lock()
		h.dials = append(h.dials, time.Now())
		h.mu.Unlock()
		return h.connect(ctx, addr)
	}
	for rank := range trainers {
		h.loaders = append(h.loaders, newLoader(t, loader.Options{Options: o, Batch: 4, Rank: rank, Ranks: trainers}))
	}
	return h
}

// raise starts all nodes.
func (h *herd) raise() {
	for _, addr := range h.addrs {
		h.start(addr, &servertest.Engine{Samples: 1 << 20, Delay: func(*batch.Name) time.Duration { return 5 * time.Millisecond }}, server.Options{})
	}
}

// fell ends them all, as a power cut does.
func (h *herd) fell() {
	for _, addr := range h.addrs {
		h.nodes[addr].kill()
	}
}

// train lets all trainers take a batch every 200 ms until ctx ends.
func (h *herd) train(ctx context.Context) {
	for i, l := range h.loaders {
		if _, err := l.Open(ctx); err != nil { // here: Fleet is looked at meanwhile
			h.t.Fatal(err)
		}
		h.running.Go(func() {
			for b, err := range l.Batches(ctx) {
				if err != nil || ctx.Err() != nil {
					return
				}
				b.Release()
				h.taken[i]++
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
}

// ready is how many streams there are, and how many the worst trainer has.
func (h *herd) ready() (all, least int) {
	least = len(h.addrs)
	for _, l := range h.loaders {
		n := 0
		for _, s := range l.Fleet().Status() {
			if s.State == client.Ready {
				n++
			}
		}
		all += n
		least = min(least, n)
	}
	return all, least
}

// within is how long it takes until done, looked at every 10 ms, 30 s at most.
func within(done func() bool) time.Duration {
	began := time.Now()
	for !done() && time.Since(began) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// crowd is the most dials within a tenth of a second.
func (h *herd) crowd() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.dials, time.Time.Compare)
	most, from := 0, 0
	for i, at := range h.dials {
		for at.Sub(h.dials[from]) > 100*time.Millisecond {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// held is the memory that the process needs: live objects and stacks.
func held() uint64 {
	runtime.GC()
	runtime.GC() // what the first one found in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// All nodes of 64 trainers go at once, and come back: everybody has one again within two seconds, they do not all knock
// at once, and nothing is left of the streams that broke.
func TestHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trainers, nodes, down := 64, 4, 5*time.Second
		if loader.Checked { // the race detector learns nothing from more of them, and takes minutes for them
			trainers = 8
		}
		h := newHerd(t, trainers, nodes)
		ctx, cancel := context.WithCancel(t.Context())
		h.train(ctx)
		time.Sleep(2 * time.Second)
		if all, _ := h.ready(); all != trainers*nodes {
			t.Fatalf("%d streams of %d", all, trainers*nodes)
		}
		routines, bytes := runtime.NumGoroutine(), held()
		t.Logf("for each stream, both ends: %.1f goroutines, %d KiB", float64(routines)/float64(trainers*nodes), bytes/uint64(trainers*nodes)>>10)
		h.fell()
		time.Sleep(down)
		h.mu.Lock()
		h.dials = nil
		h.mu.Unlock()
		h.raise()
		back := within(func() bool { _, least := h.ready(); return least > 0 })
		whole := back + within(func() bool { all, _ := h.ready(); return all == trainers*nodes })
		time.Sleep(2 * time.Second)
		t.Logf("%d trainers, %d nodes, gone for %s: everybody has a node again in %s, all streams are back in %s; %d dials, %d in the busiest tenth of a second; %d goroutines, %d before",
			trainers, nodes, down, back, whole, len(h.dials), h.crowd(), runtime.NumGoroutine(), routines)
		if back > 2*time.Second {
			t.Errorf("it took %s until everybody had a node", back)
		}
		if n := h.crowd(); n > trainers*nodes*3/4 {
			t.Errorf("%d of %d connections were tried within a tenth of a second", n, trainers*nodes)
		}
		if n := runtime.NumGoroutine(); n > routines+routines/20 {
			t.Errorf("%d goroutines before, %d after", routines, n)
		}
		if n := held(); n > bytes+bytes/4+1<<20 {
			t.Errorf("%d bytes before, %d after", bytes, n)
		}
		cancel()
		h.running.Wait()
		for i, n := range h.taken {
			if n < 20 {
				t.Errorf("trainer %d had %d batches", i, n)
			}
		}
		for _, l := range h.loaders {
			l.Close()
		}
	})
}
