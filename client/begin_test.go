package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Ranks that begin hear their nodes in any order. Were the first one's data taken, each could train on other data, and nobody would be told.
func TestBeginWithOtherData(t *testing.T) {
	for name, nodes := range map[string][]string{
		"two": {"a", "b"}, "one is down": {"a", "down", "b"}, "one hangs": {"hole", "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.start("a", &servertest.Engine{}, server.Options{})
				c.start("b", &servertest.Engine{Content: "other pictures"}, server.Options{})
				began := time.Now()
				f, err := client.New(c.options(nodes...))
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Open(t.Context())
				var data *client.DataError
				if !errors.As(err, &data) {
					t.Fatalf("%v (%T)", err, err)
				}
				for _, w := range []string{"node ", "other data than ", "class9/909 has ", "name only those that have it"} {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("it does not say %q: %v", w, err)
					}
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("it took %s", took)
				}
				f.Close()
			})
		})
	}
}

// Who has a node that may be used waits for others for a second at most, and for none that is known to be down.
func TestBeginSoon(t *testing.T) {
	for _, c := range []struct {
		nodes []string
		most  time.Duration
	}{
		{[]string{"a"}, 0},
		{[]string{"a", "b"}, 0},
		{[]string{"a", "down", "b"}, 50 * time.Millisecond},
		{[]string{"a", "hole", "b"}, 1100 * time.Millisecond},
	} {
		t.Run(strings.Join(c.nodes, " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t)
				cl.start("a", &servertest.Engine{}, server.Options{})
				cl.start("b", &servertest.Engine{}, server.Options{})
				f, err := client.New(cl.options(c.nodes...))
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if _, err := f.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("it took %s, more than %s", took, c.most)
				}
				f.Close()
			})
		})
	}
}

// Ranks begin with the numerics of most nodes, whichever answers first.
func TestBeginNumerics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for addr, digest := range map[string]string{"a": "rare", "b": "usual", "c": "usual"} {
			c.start(addr, &servertest.Engine{Digest: digest}, server.Options{})
		}
		for range 20 { // who answers first is chance
			nodes := []string{"a", "b", "c"}
			f, err := client.New(c.options(nodes...))
			if err != nil {
				t.Fatal(err)
			}
			if r, err := f.Open(t.Context()); err != nil || r.Numerics != "usual" {
				t.Errorf("%v: %q, %v", nodes, r.GetNumerics(), err)
			}
			c.await(f, 2)
			c.until("the rare one is not left out", func() bool {
				return slices.ContainsFunc(f.Status(), func(s client.NodeStatus) bool { return s.Addr == "a" && s.State == client.LeftOut })
			})
			f.Close()
		}
	})
}
