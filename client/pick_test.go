package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// pick scenarios: a trainer of ten batches a second on eight nodes that can give so much together while something is
// wrong with some of them; 200 s of virtual time, the fault at 50 s.
type trouble struct {
	side   int     // of pictures
	faulty int     // nodes
	left   float64 // capacity while the fault stands, over the demand
	speed  float64 // of a faulty node meanwhile, over that of a good one
	begin  func(*fleetOfEight, int)
	engine func(*servertest.Engine, *atomic.Bool)
	stall  float64 // bounds
	extra  float64
}

const eight = 8

// fleetOfEight is what a fault is done to.
type fleetOfEight struct {
	nodes   []*servedNode
	engines []*servertest.Engine
	sample  time.Duration
	on      [eight]atomic.Bool
	cut     [eight]atomic.Pointer[stuck]
}

func (e *fleetOfEight) slow(i int, factor int) {
	e.engines[i].SetSampleTime(time.Duration(factor) * e.sample)
}

// stuck is a connection that stops for good in the middle of a piece, or becomes slow.
type stuck struct {
	*wire
	rate atomic.Int64 // bytes a second; 0: as many as come

	mu    sync.Mutex
	armed bool
	left  int
}

// arm stops the connection after so many bytes more, which are those of a batch.
func (s *stuck) arm(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.left = true, bytes
}

func (s *stuck) Read(b []byte) (int, error) {
	n, err := s.wire.Read(b)
	s.mu.Lock()
	stop := false
	if s.armed {
		s.left -= n
		stop = s.left < 0
	}
	s.mu.Unlock()
	if stop {
		s.freeze(true)
		s.wait()
	}
	if rate := s.rate.Load(); rate > 0 {
		time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
	}
	return n, err
}

// run plays a trouble.
func (tr trouble) run(t *testing.T) {
	c := newCluster(t)
	e := &fleetOfEight{}
	const demand = 10.0
	good := demand * tr.left / (eight - float64(tr.faulty) + float64(tr.faulty)*tr.speed) // batches a second of a node
	e.sample = perSample(good)
	var addrs []string
	for i := range eight {
		engine := &servertest.Engine{Samples: 1 << 14, Cores: fleetCores, SampleTime: e.sample + time.Duration(i)*997, Height: tr.side, Width: tr.side}
		if tr.engine != nil {
			tr.engine(engine, &e.on[i])
		}
		e.engines = append(e.engines, engine)
		addrs = append(addrs, fmt.Sprint("n", i))
		e.nodes = append(e.nodes, c.start(addrs[i], engine, server.Options{}))
	}
	lasts := 200 * time.Second
	if loader.Checked {
		lasts = 80 * time.Second
	}
	r := &trainer{host: 20 * time.Millisecond, ahead: 3, phases: []phase{{lasts, time.Second / demand}}}
	o := c.options(addrs...)
	o.Dialing.PieceBytes = 256 << 10
	connect := o.Dialing.Connect
	o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		s := &stuck{wire: conn.(*wire)}
		e.cut[addr[1]-'0'].Store(s)
		return s, nil
	}
	r.begin(t, loader.Options{Options: o, Batch: fleetBatch})
	var before time.Duration
	watched(r, t, func(second int) {
		if second == 50 {
			r.mu.Lock()
			before = r.stalled
			r.mu.Unlock()
			for i := range tr.faulty {
				tr.begin(e, i)
			}
		}
	})
	made := 0
	for _, engine := range e.engines {
		made += engine.SamplesMade()
	}
	f := r.loader.Fleet()
	effort := f.Effort()
	stall := (r.stalled - before).Seconds() / (lasts - 50*time.Second).Seconds()
	extra := float64(made)/float64(effort.Samples) - 1
	t.Logf("stall %.2f %%, %.2f %% more samples made than delivered; %+v", 100*stall, 100*extra, effort)
	for _, s := range f.Status() {
		t.Logf("%+v", s)
	}
	if stall > tr.stall || extra > tr.extra {
		t.Errorf("stall %.2f %%, %.2f %% more samples made than delivered; %+v\n%s", 100*stall, 100*extra, effort, c.log)
	}
	for i := range tr.faulty { // what was held up has to go its way before the bubble ends
		e.cut[i].Load().freeze(false)
		e.cut[i].Load().rate.Store(0)
	}
	time.Sleep(time.Minute)
	r.loader.Close()
}

// watched runs a trainer, and calls watch each second.
func watched(r *trainer, t *testing.T, watch func(second int)) {
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for second := 1; ; second++ {
			select {
			case <-tick.C:
				watch(second)
			case <-stop:
				return
			}
		}
	})
	r.run(t)
	close(stop)
	watcher.Wait()
}

// Whatever happens to one node of eight, or two, the loop does not notice, and little is made twice.
func TestTroubleWithNodes(t *testing.T) {
	failing := func(e *servertest.Engine, on *atomic.Bool) {
		e.Fail = func(*batch.Name) error {
			if on.Load() {
				return &pipeline.ReadError{Index: 7, Key: "cat/7.jpg", Cause: errors.New("input/output error")}
			}
			return nil
		}
	}
	const stall, extra = 0.005, 0.05
	for name, tr := range map[string]trouble{
		"nothing":                 {4, 0, 1.15, 1, nil, nil, 0, 0.03},
		"one five times slower":   {4, 1, 1.15, 0.2, func(e *fleetOfEight, i int) { e.slow(i, 5) }, nil, stall, extra},
		"two five times slower":   {4, 2, 1.15, 0.2, func(e *fleetOfEight, i int) { e.slow(i, 5) }, nil, stall, extra},
		"one hangs":               {4, 1, 1.15, 0, func(e *fleetOfEight, i int) { e.slow(i, 100000) }, nil, stall, extra},
		"one silent":              {4, 1, 1.15, 0, func(e *fleetOfEight, i int) { e.nodes[i].freeze(true) }, nil, stall, extra},
		"one half way in a batch": {160, 1, 1.15, 0, func(e *fleetOfEight, i int) { e.cut[i].Load().arm(100 << 10) }, nil, stall, extra},
		"one behind a slow link":  {160, 1, 1.15, 0, func(e *fleetOfEight, i int) { e.cut[i].Load().rate.Store(100 << 10) }, nil, stall, extra},
		"one that fails":          {4, 1, 1.15, 0, func(e *fleetOfEight, i int) { e.on[i].Store(true) }, failing, stall, extra},
		"one dies":                {4, 1, 1.15, 0, func(e *fleetOfEight, i int) { go e.nodes[i].kill() }, nil, stall, extra},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { synctest.Test(t, tr.run) })
	}
}

// A batch that two nodes make lies in the memory of the one that came first, and nobody writes either memory after the
// answer, though most of the slower one's bytes come later.
func TestTwoNodesNeverWriteOneMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		engine := func() *servertest.Engine {
			return &servertest.Engine{Height: 300, Width: 300, Delay: func(*batch.Name) time.Duration { return 10 * time.Millisecond }}
		}
		c.start("a", engine(), server.Options{})
		c.start("b", engine(), server.Options{})
		var slow atomic.Pointer[stuck]
		o := c.options("a", "b")
		o.Dialing.PieceBytes = 256 << 10
		connect := o.Dialing.Connect
		o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := connect(ctx, addr)
			if err != nil || addr == "b" {
				return conn, err
			}
			slow.Store(&stuck{wire: conn.(*wire)})
			return slow.Load(), nil
		}
		f := c.open(o)
		const size = 2 << 20
		wanted := map[uint64][]byte{}
		var all [][]byte
		in := map[string]int{}
		for i := range uint64(40) {
			if i == 20 {
				slow.Load().rate.Store(400 << 10)
			}
			dst, spare := make([]byte, size), make([]byte, size)
			done := make(chan client.Result, 1)
			var got []byte
			f.Want(&client.Want{
				Name: rangeOf(0, i%20, 4), Request: batch.Request{Dst: dst}, Spare: func(int) []byte { return spare },
				Done: func(r client.Result) {
					if r.Err == nil {
						got = bytes.Clone(r.Data)
						in[map[bool]string{true: "first", false: "second"}[&r.Data[0] == &dst[0]]]++
					}
					for _, b := range [][]byte{dst, spare} {
						for k := range b {
							b[k] = poison
						}
					}
					done <- r
				},
			})
			if r := <-done; r.Err != nil {
				t.Fatal(r.Err)
			}
			if before := wanted[i%20]; before != nil && !bytes.Equal(before, got) {
				t.Errorf("batch %d has other bytes", i)
			}
			wanted[i%20] = got
			all = append(all, dst, spare)
		}
		time.Sleep(time.Minute) // whatever is on its way comes
		for i, b := range all {
			if bytes.Count(b, []byte{poison}) != len(b) {
				t.Errorf("memory %d was written after the answer", i)
			}
		}
		if e := f.Effort(); e.HedgesWon == 0 || in["second"] == 0 {
			t.Errorf("%+v, batches in %v: nothing was tried", e, in)
		}
		f.Close()
	})
}
