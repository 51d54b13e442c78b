package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// slowly makes a batch take d.
func slowly(d time.Duration) *servertest.Engine {
	return &servertest.Engine{Delay: func(*batch.Name) time.Duration { return d }}
}

// A node whose connection stays open and silent: its wants go elsewhere after a second, and it gets few more until it
// speaks.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		const making = 50 * time.Millisecond
		quiet := c.start("quiet", slowly(making), server.Options{})
		c.start("well", slowly(making), server.Options{})
		f := c.open(c.options("quiet", "well"))
		ask(f, rangeOf(0, 0, 8), room)
		quiet.freeze(true)
		worst := time.Duration(0)
		for i := range uint64(100) {
			began := time.Now()
			if r := ask(f, rangeOf(0, i, 8), room); r.Err != nil || r.Node != "well" {
				t.Fatalf("batch %d: %v from %s", i, r.Err, r.Node)
			}
			if took := time.Since(began); i > 0 {
				worst = max(worst, took)
			}
		}
		// The first wait is the second of silence; later ones are probes.
		if worst > 1500*time.Millisecond {
			t.Errorf("a batch took %s", worst)
		}
		if n := strings.Count(c.log.String(), "node silent"); n != 1 {
			t.Errorf("%d times silent in the log", n)
		}
		quiet.freeze(false)
		time.Sleep(time.Second)
		if s := f.Status()[0]; s.State != client.Ready {
			t.Errorf("after it spoke it is %s", s.State)
		}
		f.Close()
	})
}

// A link that is dead for good is closed by the ping that is not answered, and tried again.
func TestDeadLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.start("a", &servertest.Engine{}, server.Options{})
		f := c.open(c.options("a"))
		n.freeze(true)
		began := time.Now()
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
			t.Fatal(r.Err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		f.Close()
	})
}

// An idle trainer pings for hours and is not thrown out for it.
func TestIdleStreamLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.start("a", &servertest.Engine{}, server.Options{})
		f := c.open(c.options("a"))
		for range 5 {
			time.Sleep(20 * time.Minute)
			if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.dials != 1 {
			t.Errorf("%d connections", n.dials)
		}
		go f.Close()
	})
}

func TestNodesThatCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("well", &servertest.Engine{}, server.Options{})
		f := c.open(c.options("hole", "nobody", "well"))
		began := time.Now()
		for i := range uint64(20) {
			if r := ask(f, rangeOf(0, i, 8), room); r.Err != nil || r.Node != "well" {
				t.Fatalf("batch %d: %v", i, r.Err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("20 batches took %s", took)
		}
		time.Sleep(10 * time.Second)
		for i, want := range []client.NodeState{client.Down, client.Down, client.Ready} {
			if s := f.Status()[i]; s.State != want || (s.Err == nil) == (want == client.Down) {
				t.Errorf("%s is %s (%v), want %s", s.Addr, s.State, s.Err, want)
			}
		}
		c.start("nobody", &servertest.Engine{}, server.Options{}) // late
		time.Sleep(8 * time.Second)
		if s := f.Status()[1]; s.State != client.Ready {
			t.Errorf("a node that came late is %s: %v", s.State, s.Err)
		}
		f.Close()
	})
}

// The same on real sockets: a port where nobody listens.
func TestClosedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	f, err := client.New(client.Options{Plan: plan, Nodes: []string{addr}, StartTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Open(t.Context())
	var stall *client.StallError
	if !errors.As(err, &stall) || len(stall.Nodes) != 1 || stall.Nodes[0].State != client.Down || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v", err)
	}
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.start("a", &servertest.Engine{}, server.Options{})
		o := c.options("a", "nobody")
		o.StartTimeout, o.Timeout = 900*time.Second, 120*time.Second
		f := c.open(o)
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
			t.Fatal(r.Err)
		}
		time.Sleep(time.Hour) // nothing is wanted: that is no stall
		n.kill()
		began := time.Now()
		r := ask(f, rangeOf(0, 1, 8), room)
		var stall *client.StallError
		if took := time.Since(began); !errors.As(r.Err, &stall) || len(stall.Nodes) != 2 || took < 120*time.Second || took > 121*time.Second {
			t.Errorf("after %s: %v", took, r.Err)
		}
		if !strings.Contains(r.Err.Error(), "a: down") || !strings.Contains(r.Err.Error(), "connection refused") {
			t.Errorf("the error does not tell how nodes are: %v", r.Err)
		}
		c.start("a", &servertest.Engine{}, server.Options{})
		if r := ask(f, rangeOf(0, 2, 8), room); r.Err != nil {
			t.Errorf("after the node came back: %v", r.Err)
		}
		f.Close()
	})
}

func TestStallAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		o := c.options("hole1", "nobody")
		o.StartTimeout = 40 * time.Second
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = f.Open(t.Context())
		var stall *client.StallError
		if took := time.Since(began); !errors.As(err, &stall) || took < 40*time.Second || took > 41*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if n := strings.Count(c.log.String(), "waiting for nodes"); n != 2 { // after 3 and 33 s
			t.Errorf("it was said %d times what it waits for:\n%s", n, c.log)
		}
		f.Close()
	})
}

// deaf is a scaler that answers each call with its error.
type deaf struct{ err error }

func (d deaf) Tell(context.Context, *pb.OpenRequest) error { return d.err }

func (deaf) Close() error { return nil }

// A scaler that does not hear of a trainer without nodes is told of now and then, for nodes may never come; of one that hears there is nothing to say.
func TestScalerThatDoesNotHear(t *testing.T) {
	for _, d := range []struct {
		err   error
		times int
	}{{errors.New("no such host"), 2}, {nil, 0}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			o := c.options("nobody")
			o.StartTimeout, o.Scaler = 40*time.Second, deaf{d.err}
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Open(t.Context())
			if n := strings.Count(c.log.String(), "the scaler does not hear"); n != d.times || n > 0 && !strings.Contains(c.log.String(), "no such host") {
				t.Errorf("%v: it was said %d times, not %d:\n%s", d.err, n, d.times, c.log)
			}
			f.Close()
		})
	}
}

// half is a node that answers Open and takes no stream.
type half struct{ node.Node }

func (half) Fetch(context.Context, *pb.Start, func(*pb.Notice)) (node.Stream, error) {
	return nil, errors.New("no stream today")
}

// A node that answers and never takes a stream keeps nobody waiting for ever.
func TestStallOfANodeThatTakesNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", &servertest.Engine{}, server.Options{})
		n, err := node.Dial("a", c.options().Dialing)
		if err != nil {
			t.Fatal(err)
		}
		f, err := client.New(client.Options{Plan: plan, Local: half{n}, StartTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var stall *client.StallError
		if _, err := f.Open(ctx); !errors.As(err, &stall) || !strings.Contains(err.Error(), "no stream today") {
			t.Errorf("error %v", err)
		}
		f.Close()
	})
}

// A first batch may take longer than later ones.
func TestStartTimeoutHoldsUntilTheFirstBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", slowly(300*time.Second), server.Options{})
		f := c.open(c.options("a"))
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
			t.Error(r.Err)
		}
		f.Close()
	})
}

// Busy and draining nodes get no wants until they may have some again.
func TestBusyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		const slot = 4 << 10
		c.start("small", slowly(time.Second), server.Options{NodeBytes: slot, StreamBytes: slot})
		f := c.open(c.options("small"))
		results := make(chan client.Result)
		for i := range uint64(6) {
			go func() { results <- ask(f, rangeOf(0, i, 8), room) }()
		}
		for range 6 {
			if r := <-results; r.Err != nil {
				t.Error(r.Err)
			}
		}
		f.Close()
	})
}

func TestTooLargeForEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("small", &servertest.Engine{}, server.Options{NodeBytes: 8 << 10, StreamBytes: 8 << 10})
		f := c.open(c.options("small"))
		var all *client.NodesError
		if r := ask(f, rangeOf(0, 0, 500), room); !errors.As(r.Err, &all) || !strings.Contains(r.Err.Error(), "this node makes none over 8192") {
			t.Errorf("error %v", r.Err)
		}
		f.Close()
	})
}

func TestDrainingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		going := c.start("going", slowly(500*time.Millisecond), server.Options{})
		c.start("well", slowly(500*time.Millisecond), server.Options{})
		f := c.open(c.options("going", "well"))
		results := make(chan client.Result)
		for i := range uint64(6) {
			go func() { results <- ask(f, rangeOf(0, i, 8), room) }()
		}
		time.Sleep(100 * time.Millisecond)
		drained := make(chan error)
		go func() { drained <- going.server.Drain(t.Context()) }()
		from := map[string]int{}
		for range 6 {
			r := <-results
			if r.Err != nil {
				t.Error(r.Err)
			}
			from[r.Node]++
		}
		if from["going"] != 3 {
			t.Errorf("what the draining node had in flight was not used: %v", from)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if r := ask(f, rangeOf(0, 9, 8), room); r.Err != nil || r.Node != "well" {
			t.Errorf("%v from %s", r.Err, r.Node)
		}
		f.Close()
	})
}

// Nodes that would give other batches are left out and named.
func TestNodesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		other *servertest.Engine
		words []string
	}{
		"numerics": {&servertest.Engine{Digest: "others"}, []string{"left out", "numerics others"}},
		"data":     {&servertest.Engine{Content: "other pictures"}, []string{"left out", `class \"class9\" has 100 samples there and 100 on first`, "first difference: class9/909 has 114 bytes there and 100 on first"}},
		"counts":   {&servertest.Engine{Samples: 999}, []string{"left out", `class \"class9\" has 99 samples there and 100`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t)
				cl.start("first", &servertest.Engine{}, server.Options{})
				f := cl.open(cl.options("first", "other"))
				cl.start("other", c.other, server.Options{})
				time.Sleep(time.Minute)
				if s := f.Status()[1]; s.State != client.LeftOut || s.Err == nil {
					t.Errorf("it is %s: %v", s.State, s.Err)
				}
				for _, w := range c.words {
					if !strings.Contains(cl.log.String(), w) {
						t.Errorf("the log does not say %q:\n%s", w, cl.log)
					}
				}
				for i := range uint64(20) {
					if r := ask(f, rangeOf(0, i, 8), room); r.Err != nil || r.Node != "first" {
						t.Fatalf("%v from %s", r.Err, r.Node)
					}
				}
				f.Close()
			})
		})
	}
}

func TestOpenFails(t *testing.T) {
	var plan *batch.PlanError
	var data *node.DataError
	var numerics *node.NumericsError
	for name, c := range map[string]struct {
		change func(*client.Options)
		target any
	}{
		"plan":        {func(o *client.Options) { o.Plan = "{" }, &plan},
		"root":        {func(o *client.Options) { o.Plan = `{"source": {"root": "none"}}` }, &data},
		"fingerprint": {func(o *client.Options) { o.Fingerprint = "00" }, &data},
		"fingerprint in plan": {func(o *client.Options) {
			o.Plan = `{"source": {"root": "photos", "fingerprint": "` + strings.Repeat("00", 32) + `"}}`
		}, &data},
		"numerics": {func(o *client.Options) { o.Numerics = "00" }, &numerics},
	} {
		for _, nodes := range [][]string{{"a"}, {"a", "nobody", "b"}} {
			t.Run(name, func(t *testing.T) {
				cl := newCluster(t)
				cl.start("a", &servertest.Engine{}, server.Options{})
				cl.start("b", &servertest.Engine{}, server.Options{})
				o := cl.options(nodes...)
				c.change(&o)
				f, err := client.New(o)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.Open(t.Context()); !errors.As(err, c.target) {
					t.Errorf("error %v (%T)", err, err)
				}
			})
		}
	}
	t.Run("a cancelled context", func(t *testing.T) {
		f, err := client.New(newCluster(t).options("hole"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Open(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		f.Close()
		if _, err := f.Open(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("error %v after close", err)
		}
	})
}

// Data that changes on a node's disk: the node is looked at again and left out.
func TestDataChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var changed atomic.Bool
		e := &servertest.Engine{}
		e.Fail = func(*batch.Name) error {
			if changed.Load() {
				return &pipeline.ReadError{Key: "a", Cause: &dataset.ChangedError{Path: "a", What: "is gone"}}
			}
			return nil
		}
		c.start("changing", e, server.Options{})
		f := c.open(c.options("changing"))
		c.start("well", &servertest.Engine{}, server.Options{})
		if err := f.SetNodes([]string{"changing", "well"}); err != nil {
			t.Fatal(err)
		}
		c.await(f, 2)
		time.Sleep(time.Minute)
		changed.Store(true)
		e.Change("new")
		for i := range uint64(20) {
			if r := ask(f, rangeOf(0, i, 8), room); r.Err != nil || r.Node != "well" {
				t.Fatalf("%v from %s", r.Err, r.Node)
			}
		}
		time.Sleep(time.Second)
		if s := f.Status()[0]; s.State != client.LeftOut {
			t.Errorf("it is %s: %v", s.State, s.Err)
		}
		f.Close()
	})
}

func TestAddresses(t *testing.T) {
	for addr, right := range map[string]bool{
		"127.0.0.1:7070": true, "localhost:1": true, "[::1]:7070": true, "unix:/run/feedwater": true,
		"127.0.0.1": false, ":7070": false, "localhost:http": false, "localhost:99999": false, "http://localhost:7070": false, "a b:3": false, "": false,
		"cpu-1:7070": false, // another machine
	} {
		_, err := node.Dial(addr, node.DialOptions{})
		var address *node.AddressError
		if right && err != nil || !right && !errors.As(err, &address) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if _, err := node.Dial("cpu-1:7070", node.DialOptions{Insecure: true}); err != nil {
		t.Error(err)
	}
	if _, err := node.Dial("cpu-1:7070", node.DialOptions{}); !strings.Contains(err.Error(), "FEEDWATER_INSECURE=1") {
		t.Errorf("%v does not say what allows it", err)
	}
}
