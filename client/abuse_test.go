package client_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// abuses is how many there are of each kind: a fifth of them in the short form, which is for the race detector.
func abuses() int {
	if testing.Short() {
		return 200
	}
	return 1000
}

// lent is the bytes that a node has lent to its streams.
func (n *servedNode) lent() float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(n.server)
	families, err := registry.Gather()
	if err != nil {
		n.cluster.t.Error(err)
	}
	for _, f := range families {
		if f.GetName() == "feedwater_node_lent_bytes" {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	return -1
}

// settled waits until a node has got back all that it lent.
func (n *servedNode) settled() {
	n.cluster.t.Helper()
	n.cluster.until("slots of node "+n.addr+" are still lent", func() bool { return n.lent() == 0 })
}

// ask wants a batch whose memory is poisoned when its answer comes.
func (l *lent) ask(t *testing.T, f *client.Fleet, position uint64, count uint32, answered *sync.WaitGroup) {
	answered.Add(1)
	l.want = client.Want{Name: rangeOf(0, position, count), Request: batch.Request{Dst: make([]byte, 128<<10)}}
	l.want.Done = func(r client.Result) {
		if r.Err != nil && !errors.Is(r.Err, node.ErrCancelled) {
			t.Error(r.Err)
		}
		l.poison()
		l.answers++ // a second answer is found by the race detector, or by Done of answered
		answered.Done()
	}
	f.Want(&l.want)
}

func (l *lent) check(t *testing.T) {
	t.Helper()
	if l.answers != 1 {
		t.Errorf("a want had %d answers", l.answers)
	}
	if i := l.spoilt(); i >= 0 {
		t.Errorf("byte %d was written after the answer", i)
	}
}

func TestThousandCancelledWants(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("a", &servertest.Engine{Height: 64, Width: 64, Cores: 64}, server.Options{})
	f := c.open(c.options("a"))
	r := rand.New(rand.NewPCG(4, 4))
	for range abuses() / 20 {
		var wants [20]lent
		var answered sync.WaitGroup
		for i := range wants {
			wants[i].ask(t, f, r.Uint64N(1000), 8, &answered)
		}
		for i := range wants {
			for range r.IntN(30) {
				runtime.Gosched()
			}
			f.Cancel(&wants[i].want)
		}
		answered.Wait()
		for i := range wants {
			wants[i].check(t)
		}
	}
	n.settled()
	if s := f.Status()[0]; s.Failures != 0 || s.State != client.Ready {
		t.Errorf("the node is %s, with %d failures", s.State, s.Failures)
	}
}

// Each fleet's connection breaks while batches are on it; the next one brings them.
func TestThousandDyingConnections(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("a", &servertest.Engine{Height: 64, Width: 64}, server.Options{NodeBytes: 64 << 20, HostShare: 1000})
	const trainers = 40
	var running sync.WaitGroup
	for k := range uint64(trainers) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(k, 5))
			for range abuses() / trainers {
				dying(t, c, r)
			}
		})
	}
	running.Wait()
	n.settled()
}

func dying(t *testing.T, c *cluster, r *rand.Rand) {
	o := c.options("a")
	o.StartTimeout = 20 * time.Second
	var mu sync.Mutex
	var wires []net.Conn
	o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
		w, err := c.connect(ctx, addr)
		mu.Lock()
		defer mu.Unlock()
		wires = append(wires, w)
		return w, err
	}
	f, err := client.New(o)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := f.Open(t.Context()); err != nil {
		t.Error(err)
	}
	var wants [3]lent
	var answered sync.WaitGroup
	for i := range wants {
		wants[i].ask(t, f, r.Uint64N(1000), 8, &answered)
	}
	for range r.IntN(100) {
		runtime.Gosched()
	}
	mu.Lock()
	wires[0].Close()
	mu.Unlock()
	answered.Wait()
	for i := range wants {
		wants[i].check(t)
	}
}

// A node stops in the middle of everything, its connections open: a second later all its wants are elsewhere.
func TestThousandWantsOfASilentNode(t *testing.T) {
	c := newCluster(t)
	engine := func() *servertest.Engine {
		return &servertest.Engine{Height: 64, Width: 64, Cores: 64, Delay: func(*batch.Name) time.Duration { return time.Millisecond }}
	}
	quiet := c.start("quiet", engine(), server.Options{})
	well := c.start("well", engine(), server.Options{})
	const fleets = 10
	wants := make([]lent, abuses())
	var answered sync.WaitGroup
	for k := range fleets {
		f := c.open(c.options("quiet", "well"))
		for i := range abuses() / fleets {
			wants[k*abuses()/fleets+i].ask(t, f, uint64(i), 1, &answered)
		}
	}
	quiet.freeze(true)
	answered.Wait()
	for i := range wants {
		wants[i].check(t)
	}
	quiet.freeze(false)
	quiet.settled()
	well.settled()
}
