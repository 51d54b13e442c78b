package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// keeping is a node's engine that has a list from before its data changed.
func keeping(kept servertest.Kept, content, versions string) *servertest.Engine {
	return &servertest.Engine{Store: "s", Kept: &kept, Content: content, Versions: versions}
}

// Nodes of which one has a list from before the data changed begin a job, with what there is: each makes its list anew, once. Nodes whose data differs
// begin none, whatever they keep.
func TestJobThatBeginsOnAKeptList(t *testing.T) {
	old := servertest.Kept{Content: "one", Versions: "1"}
	for name, c := range map[string]struct {
		a, b  *servertest.Engine
		fails string
	}{
		"other versions":        {keeping(old, "one", "2"), &servertest.Engine{Store: "s", Content: "one", Versions: "2"}, ""},
		"other data":            {keeping(old, "two", "2"), &servertest.Engine{Store: "s", Content: "two", Versions: "2"}, ""},
		"two old lists":         {keeping(old, "two", "3"), keeping(servertest.Kept{Content: "one", Versions: "2"}, "two", "3"), ""},
		"versions still differ": {keeping(old, "one", "2"), keeping(servertest.Kept{Content: "one", Versions: "2"}, "one", "3"), "Start again"},
		"data still differs":    {keeping(old, "one", "1"), &servertest.Engine{Store: "s", Content: "two", Versions: "1"}, "give all nodes the same data"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(t)
				cluster.start("a", c.a, server.Options{})
				cluster.start("b", c.b, server.Options{})
				f, err := client.New(cluster.options("a", "b"))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				_, err = f.Open(t.Context())
				if data := (*node.DataError)(nil); c.fails != "" && (!errors.As(err, &data) || !strings.Contains(err.Error(), c.fails)) || c.fails == "" && err != nil {
					t.Fatalf("error %v", err)
				}
				if c.fails == "" {
					cluster.await(f, 2)
				}
				for addr, e := range map[string]*servertest.Engine{"a": c.a, "b": c.b} {
					if n := e.Listed(); n != 1 {
						t.Errorf("%s listed its data %d times", addr, n)
					}
				}
			})
		})
	}
}

// A node that comes to a running job with an old list makes it anew and takes part. One whose data is other data does so once, and is left out.
func TestNodeThatComesWithAKeptList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", &servertest.Engine{Store: "s", Content: "one", Versions: "2"}, server.Options{})
		f := c.open(c.options("a", "b", "c"))
		b := keeping(servertest.Kept{Content: "one", Versions: "1"}, "one", "2")
		other := keeping(servertest.Kept{Content: "one", Versions: "1"}, "two", "2")
		c.start("b", b, server.Options{})
		c.start("c", other, server.Options{})
		c.await(f, 2)
		time.Sleep(5 * time.Minute) // on the test's clock
		expect(t, f, client.Ready, "a b")
		expect(t, f, client.LeftOut, "c")
		if b.Listed() != 1 || other.Listed() != 1 {
			t.Errorf("%d and %d scans", b.Listed(), other.Listed())
		}
		mustMake(t, f, 3)
		f.Close()
	})
}

// All trainers that begin at once share one scan, however long it takes, and nothing is pinned before it ends.
func TestTrainersShareANewList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		a := keeping(servertest.Kept{Content: "one", Versions: "1"}, "one", "2")
		scans := 0
		a.Scanning = func(ctx context.Context, _ string) error {
			if scans++; scans > 1 { // the first one finds the kept list at once
				time.Sleep(20 * time.Second)
			}
			return ctx.Err()
		}
		c.start("a", a, server.Options{})
		c.start("b", &servertest.Engine{Store: "s", Content: "one", Versions: "2"}, server.Options{})
		var trainers sync.WaitGroup
		for range 8 {
			trainers.Go(func() {
				f, err := client.New(c.options("a", "b"))
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if _, err := f.Open(t.Context()); err != nil {
					t.Error(err)
				}
				if _, stores := f.Pins(); stores["s"] != "2" {
					t.Errorf("stores %v", stores)
				}
			})
		}
		trainers.Wait()
		if n := a.Listed(); n != 1 {
			t.Errorf("%d scans for eight trainers", n)
		}
	})
}

// A node whose data is wrong for a while beside others that go on, and of which a wrong list is kept, takes part again when its
// data is right. As long as it is not it lists it ever more seldom.
func TestNodeWhoseDataIsWrongForAWhile(t *testing.T) {
	for name, c := range map[string]struct {
		content, times string // in the end
		leftOut        string
		within         time.Duration
		rounds, most   int // scans of each
	}{
		"right again":     {"one", "old", "", 40 * time.Second, 8, 3},
		"of other times":  {"one", "new", "b", time.Hour, 1, 15},
		"without times":   {"one", "", "b", time.Hour, 1, 15},
		"still different": {"two", "old", "b", time.Hour, 1, 15},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := newCluster(t)
				var changed atomic.Bool
				b := &servertest.Engine{Content: "one", Times: "old", Fail: func(*batch.Name) error {
					if changed.Load() {
						return &dataset.ChangedError{Path: "a", What: "has 1 bytes, had 2"}
					}
					return nil
				}}
				nodes.start("a", &servertest.Engine{Content: "one"}, server.Options{})
				nodes.start("b", b, server.Options{})
				f := nodes.open(nodes.options("a", "b"))
				for range c.rounds {
					changed.Store(true)
					b.Rewrite("two", "new")
					mustMake(t, f, 20)
					expect(t, f, client.LeftOut, "b")
					changed.Store(false)
					b.Keep(servertest.Kept{Content: "two"})
					b.Rewrite(c.content, c.times)
					before := b.Listed()
					time.Sleep(c.within)
					expect(t, f, client.LeftOut, c.leftOut)
					if n := b.Listed() - before; n < 1 || n > c.most {
						t.Errorf("%d scans, want 1 to %d", n, c.most)
					}
				}
				mustMake(t, f, 3)
				f.Close()
			})
		})
	}
}
