package client_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

const room = 64 << 10

func TestOneBatch(t *testing.T) {
	c := newCluster(t)
	c.start("a", &servertest.Engine{}, server.Options{})
	f := c.open(c.options("a"))
	r := ask(f, rangeOf(0, 5, 8), room)
	if r.Err != nil || r.Node != "a" || len(r.Data) != 8*48+2*64 || len(r.Header.Fields) != 3 || cap(r.Data) != room {
		t.Errorf("got %d bytes, %v", len(r.Data), r)
	}
	if i := f.Info(); i.Samples != 1000 {
		t.Errorf("info %v", i)
	}
}

// Trouble that is nobody's fault but the want's: no other node is asked, but one where a sample does not decode.
func TestFinalFailures(t *testing.T) {
	c := newCluster(t)
	var made atomic.Int64
	fail := func(n *batch.Name) error {
		made.Add(1)
		if n.Epoch == 1 {
			return &pipeline.SampleError{Offset: 2, Index: 7, Key: "cat/7.jpg", Op: "decode", Cause: errors.New("damaged")}
		}
		return nil
	}
	c.start("a", &servertest.Engine{Fail: fail}, server.Options{})
	c.start("b", &servertest.Engine{Fail: fail}, server.Options{})
	f := c.open(c.options("a", "b"))
	var sample *node.SampleError
	if r := ask(f, rangeOf(1, 0, 8), room); !errors.As(r.Err, &sample) || string(sample.Key) != "cat/7.jpg" || sample.Offset != 2 || sample.Node == "" {
		t.Errorf("a sample that does not decode: %v", r.Err)
	}
	if n := made.Load(); n != 2 {
		t.Errorf("it was tried %d times", n)
	}
	var plan *batch.PlanError
	if r := ask(f, rangeOf(0, 0, 0), room); !errors.As(r.Err, &plan) {
		t.Errorf("a name that is none: %v", r.Err)
	}
	var small *node.RoomError
	if r := ask(f, rangeOf(0, 0, 8), 100); !errors.As(r.Err, &small) || small.Bytes != 8*48+2*64 {
		t.Errorf("too little room: %v", r.Err)
	}
	if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
		t.Errorf("afterwards: %v", r.Err)
	}
}

// A file that one node cannot read rightly, and another can: its batches come from that one, and the other is left out
// and named.
func TestOneCopyIsDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		want := func() string {
			c.start("well", &servertest.Engine{}, server.Options{})
			return digest(t, newLoader(t, loader.Options{Options: c.options("well"), Batch: 10}), 1)
		}()
		var met atomic.Bool
		c.start("damaged", &servertest.Engine{Fail: func(n *batch.Name) error {
			if n.Position > 300 {
				met.Store(true)
				return &pipeline.SampleError{Offset: 2, Index: 7, Key: "cat/7.jpg", Op: "decode", Cause: errors.New("corrupt")}
			}
			return nil
		}}, server.Options{})
		l := newLoader(t, loader.Options{Options: c.options("damaged", "well"), Batch: 10})
		if _, err := l.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.await(l.Fleet(), 2)
		if got := digest(t, l, 1); got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if !met.Load() {
			t.Fatal("the damaged node was not asked")
		}
		c.until("it is not left out", func() bool { return l.Fleet().Status()[0].State == client.LeftOut })
		if log := c.log.String(); !strings.Contains(log, "the copy is damaged") || !strings.Contains(log, "cat/7.jpg") ||
			!strings.Contains(log, "; opened again: the names and sizes that the job began with") || strings.Contains(log, "a new Loader") {
			t.Errorf("the log does not say why:\n%s", log)
		}
		l.Close()
	})
}

// TestRefusalIsToldOnce: what the error of Open says is not a warning besides. Of a node that others stand in for it is one.
func TestRefusalIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", &servertest.Engine{}, server.Options{})
		o := c.options("a")
		o.Plan = `{"source": {"root": "elsewhere"}}`
		l := newLoader(t, loader.Options{Options: o, Batch: 10})
		if _, err := l.Open(t.Context()); err == nil || !strings.Contains(err.Error(), `no root "elsewhere"`) {
			t.Errorf("%v, want one about the root", err)
		}
		l.Close()
		if log := c.log.String(); strings.Contains(log, "level=WARN") {
			t.Errorf("it is in the log too:\n%s", log)
		}
	})
}

func TestGrow(t *testing.T) {
	c := newCluster(t)
	c.start("a", &servertest.Engine{Ragged: true, Height: 30, Width: 30}, server.Options{})
	f := c.open(c.options("a"))
	result := make(chan client.Result, 1)
	f.Want(&client.Want{
		Name: rangeOf(0, 0, 100), Request: batch.Request{Dst: make([]byte, 100), Grow: func(n int) []byte { return make([]byte, n) }}, Done: func(r client.Result) { result <- r },
	})
	if r := <-result; r.Err != nil || len(r.Data) < 100*30*30*3/3 {
		t.Errorf("%d bytes, %v", len(r.Data), r.Err)
	}
	f.Want(&client.Want{
		Name: rangeOf(0, 0, 100), Request: batch.Request{Dst: make([]byte, 100), Grow: func(int) []byte { return nil }}, Done: func(r client.Result) { result <- r },
	})
	var small *node.RoomError
	if r := <-result; !errors.As(r.Err, &small) {
		t.Errorf("no room: %v", r.Err)
	}
}

// Trouble of one node: another one makes the batch.
func TestNodesTrouble(t *testing.T) {
	sick := &pipeline.ReadError{Index: 7, Key: "cat/7.jpg", Cause: errors.New("input/output error")}
	for name, e := range map[string]*servertest.Engine{
		"storage": {Fail: func(*batch.Name) error { return sick }},
		"damage":  {Result: func(_ *batch.Name, r *pipeline.Result) { r.CRC32C ^= 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.start("sick", e, server.Options{})
			c.start("well", &servertest.Engine{}, server.Options{})
			f := c.open(c.options("sick", "well"))
			for i := range uint64(50) {
				if r := ask(f, rangeOf(0, i, 8), room); r.Err != nil || r.Node != "well" {
					t.Fatalf("batch %d: %v from %q", i, r.Err, r.Node)
				}
			}
			c.until("failures are not counted", func() bool {
				s := f.Status()[0]
				return s.Addr == "sick" && s.Failures > 0 && (s.Damaged == 1) == (name == "damage") // then it is asked last
			})
		})
	}
}

// A want fails for good only after every node that is up has failed it twice, and none that is down has come.
func TestAllNodesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var tries atomic.Int64
		sick := func(n *batch.Name) error {
			if n.Epoch == 0 {
				return nil
			}
			tries.Add(1)
			return &pipeline.ReadError{Index: 7, Key: "cat/7.jpg", Cause: errors.New("input/output error")}
		}
		c.start("a", &servertest.Engine{Fail: sick}, server.Options{})
		c.start("b", &servertest.Engine{Fail: sick}, server.Options{})
		f := c.open(c.options("a", "b", "nobody"))
		var all *client.NodesError
		if r := ask(f, rangeOf(1, 0, 8), room); !errors.As(r.Err, &all) || len(all.Nodes) != 2 || !strings.Contains(r.Err.Error(), "input/output error") {
			t.Errorf("error %v", r.Err)
		}
		if n := tries.Load(); n < 4 {
			t.Errorf("%d tries", n)
		}
		f.Close()
	})
}
