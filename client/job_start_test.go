package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// A job begins with no rank on other data than another's: where nodes differ none begins, whoever answers first.
func TestJobThatBeginsOnOtherData(t *testing.T) {
	for name, nodes := range map[string][]string{
		"two": {"a", "b"}, "the other way round": {"b", "a"}, "one is down": {"a", "nobody", "b"}, "one is a hole": {"a", "b", "hole"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.start("a", &servertest.Engine{}, server.Options{})
				c.start("b", &servertest.Engine{Content: "other pictures"}, server.Options{})
				f, err := client.New(c.options(nodes...))
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Open(t.Context())
				var data *node.DataError
				if !errors.As(err, &data) {
					t.Errorf("error %v", err)
				}
				for _, w := range []string{" has other data than ", "first difference: class9/909 has ", "on " + nodes[0] + ")", "give all nodes the same data"} {
					if !strings.Contains(fmt.Sprint(err), w) {
						t.Errorf("%q is not in %v", w, err)
					}
				}
				time.Sleep(time.Minute)
				if ready := members(f, client.Ready); ready != "" || f.Info() != nil {
					t.Errorf("it began on %q nonetheless", ready)
				}
				f.Close()
			})
		})
	}
}

// How long a job waits for the answers of nodes: for those that fail not at all, for those that say nothing a second,
// and for others of its nodes not if there is one alone.
func TestJobThatBeginsWaits(t *testing.T) {
	for _, v := range []struct {
		nodes []string
		least time.Duration
	}{{[]string{"a"}, 0}, {[]string{"a", "b"}, 0}, {[]string{"nobody", "a", "b"}, 0}, {[]string{"hole", "a", "b"}, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.start("a", &servertest.Engine{}, server.Options{})
			c.start("b", &servertest.Engine{}, server.Options{})
			began := time.Now()
			f := c.open(c.options(v.nodes...))
			if took := time.Since(began); took < v.least || took > v.least+200*time.Millisecond {
				t.Errorf("%v: after %s", v.nodes, took)
			}
			f.Close()
		})
	}
}

// Numerics are those of most nodes, or the smallest of as many, on every rank.
func TestNumericsOfMostNodes(t *testing.T) {
	for want, digests := range map[string][]string{"two": {"one", "two", "two"}, "first": {"second", "first"}, "only": {"only", "only", "only"}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			nodes, others := []string{"a", "b", "c"}[:len(digests)], 0
			for i, d := range digests {
				c.start(nodes[i], &servertest.Engine{Digest: d}, server.Options{})
				if d != want {
					others++
				}
			}
			f, err := client.New(c.options(nodes...))
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Open(t.Context())
			if err != nil || info.GetNumerics() != want {
				t.Errorf("%v: %v, %v", digests, info.GetNumerics(), err)
			}
			time.Sleep(time.Second)
			if out := members(f, client.LeftOut); len(strings.Fields(out)) != others {
				t.Errorf("%v: left out are %q", digests, out)
			}
			f.Close()
		})
	}
}

// The ranks of a job on many nodes of two kinds pin the same numerics, and go over to nodes of their own.
func TestRanksPinTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var nodes []string
		for i := range 40 {
			addr := fmt.Sprint("node", i)
			nodes = append(nodes, addr)
			c.start(addr, &servertest.Engine{Digest: []string{"one", "two"}[i%2]}, server.Options{})
		}
		pinned, used := map[string]int{}, map[string]bool{}
		for rank := range 8 {
			o := c.options(nodes...)
			o.Rank = rank
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pinned[info.Numerics]++
			time.Sleep(5 * time.Second)
			ready := strings.Fields(members(f, client.Ready))
			if len(ready) > 8 {
				t.Errorf("rank %d has streams to %d nodes", rank, len(ready))
			}
			for _, addr := range ready {
				used[addr] = true
			}
			f.Close()
		}
		if len(pinned) != 1 {
			t.Errorf("pinned are %v", pinned)
		}
		if len(used) <= 8 {
			t.Errorf("eight ranks use %d nodes", len(used))
		}
	})
}

// A rank of a job that goes on, whose data is known, begins with nodes of its own.
func TestRanksOfAJobThatGoesOnUseTheirOwnNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := manyNodes(t, 100)
		ready := func(fingerprint string, after time.Duration) string {
			o := c.options(1)
			o.Fingerprint = fingerprint
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			return members(f, client.Ready)
		}
		own := ready("", 5*time.Second)
		if now := ready("fingerprint", 200*time.Millisecond); now != own || own == "" {
			t.Errorf("it begins with %q, its own are %q", now, own)
		}
	})
}

// A job that goes on, and one that has begun, leave nodes of other data out.
func TestJobThatGoesOnLeavesOtherDataOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", &servertest.Engine{}, server.Options{})
		c.start("b", &servertest.Engine{Content: "other pictures"}, server.Options{})
		s := newScript()
		f := c.sourced(s, "a")
		began := time.Now()
		info, err := f.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Second || took > 1200*time.Millisecond {
			t.Errorf("a source that says nothing was waited for %s", took)
		}
		s.says("b")
		expect(t, f, client.LeftOut, "b")

		for _, nodes := range [][]string{{"a", "b"}, {"b", "a"}} {
			o := c.options(nodes...)
			o.Fingerprint = info.Fingerprint
			g, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Open(t.Context()); err != nil {
				t.Error(err)
			}
			expect(t, g, client.LeftOut, "b")
			g.Close()
		}
		f.Close()
	})
}

// A source's nodes are among those of which a job begins.
func TestJobThatBeginsOnASourceOfOtherData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, addr := range []string{"a", "b"} {
			c.start(addr, &servertest.Engine{Content: addr}, server.Options{})
		}
		s := newScript()
		f := c.sourced(s, "a")
		go func() { s.answers <- membership.Answer{Nodes: []string{"b"}} }()
		var data *node.DataError
		if _, err := f.Open(t.Context()); !errors.As(err, &data) || !strings.HasPrefix(err.Error(), "b has other data than a (") {
			t.Errorf("error %v", err)
		}
		f.Close()
	})
}

// A fleet may be closed while answers wait.
func TestCloseBeforeTheJobBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start("a", &servertest.Engine{}, server.Options{})
		f, err := client.New(c.options("a", "hole"))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(500*time.Millisecond, f.Close)
		if _, err := f.Open(t.Context()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("error %v", err)
		}
		f.Close()
	})
}
