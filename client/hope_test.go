package client_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A node that cannot make a batch does not end the run while another one restarts.
func TestNodeThatFailsWhileTheOtherRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		broken := &servertest.Engine{Fail: func(*pipeline.Name) error { return &pipeline.ReadError{Key: "a", Cause: net.ErrClosed} }}
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
