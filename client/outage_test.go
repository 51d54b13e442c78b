package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A node that cannot make a batch does not end the run while another one restarts.
func TestNodeThatFailsWhileTheOtherRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		broken := &servertest.Engine{Fail: func(*batch.Name) error { return &pipeline.ReadError{Key: "a", Cause: net.ErrClosed} }}
		c.start("broken", broken, server.Options{})
		well := c.start("well", &servertest.Engine{}, server.Options{})
		f := c.open(c.options("broken", "well"))
		well.kill()
		time.AfterFunc(5*time.Second, func() { c.start("well", &servertest.Engine{}, server.Options{}) })
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil || r.Node != "well" {
			t.Errorf("%v from %q", r.Err, r.Node)
		}
		f.Close()
	})
}

// Nobody dials a node but who waits for it: gRPC's own attempts would double those of every trainer when nodes restart.
func TestOneDialPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		o := c.options("nobody")
		var dials atomic.Int32
		o.Dialing.Connect = func(ctx context.Context, addr string) (net.Conn, error) {
			dials.Add(1)
			return c.connect(ctx, addr)
		}
		o.StartTimeout = 10 * time.Minute
		f, err := client.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Open(t.Context()); err == nil {
			t.Error("it opened")
		}
		f.Close()
		// Waits are 5 s, a quarter less at the shortest, after a hundred that are shorter, for there is no other node.
		if n := dials.Load(); n > 10*60*4/15+100 {
			t.Errorf("%d attempts in 10 minutes", n)
		}
	})
}

// Storage trouble of the only node, and a node that comes back before its data is there, are waited out by a job that
// has begun.
func TestTroubleOfTheOnlyNodePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var broken atomic.Bool
		e := &servertest.Engine{Fail: func(*batch.Name) error {
			if broken.Load() {
				return &pipeline.ReadError{Key: "a", Cause: syscall.ESTALE}
			}
			return nil
		}}
		n := c.start("a", e, server.Options{})
		f := c.open(c.options("a"))
		well := func(first uint64) {
			t.Helper()
			if r := ask(f, rangeOf(0, first, 8), room); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		well(0)
		broken.Store(true)
		time.AfterFunc(20*time.Second, func() { broken.Store(false) })
		well(8)
		if log := c.log.String(); !strings.Contains(log, "stale") {
			t.Errorf("nothing is told of the trouble:\n%s", log)
		}
		n.kill()
		other := c.start("a", &servertest.Engine{Content: "other"}, server.Options{})
		time.AfterFunc(20*time.Second, func() {
			other.kill()
			c.start("a", &servertest.Engine{}, server.Options{})
		})
		well(16)
		f.Close()
	})
}

// What does not pass ends the run after its timeout, with the reason; before the first batch it ends it at once.
func TestTroubleThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.start("a", &servertest.Engine{}, server.Options{})
		f := c.open(c.options("a"))
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
			t.Fatal(r.Err)
		}
		n.kill()
		c.start("a", &servertest.Engine{Content: "other"}, server.Options{})
		began := time.Now()
		var data *node.DataError
		if r := ask(f, rangeOf(0, 8, 8), room); !errors.As(r.Err, &data) || time.Since(began) < 110*time.Second || time.Since(began) > 130*time.Second {
			t.Errorf("after %s: %v", time.Since(began), r.Err)
		}
		f.Close()

		c.start("broken", &servertest.Engine{Fail: func(*batch.Name) error { return &pipeline.ReadError{Key: "a", Cause: syscall.EIO} }}, server.Options{})
		g := c.open(c.options("broken"))
		began = time.Now()
		if r := ask(g, rangeOf(0, 0, 8), room); r.Err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), r.Err)
		}
		g.Close()
	})
}
