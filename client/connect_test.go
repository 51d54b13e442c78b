package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Of twenty nodes a trainer uses eight, others when some of those die, and those again when they are back; a trainer of
// another rank uses others.
func TestSomeNodesOfALargeFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		nodes := map[string]*servedNode{}
		var addrs []string
		for i := range 20 {
			addr := fmt.Sprint("n", i)
			addrs = append(addrs, addr)
			nodes[addr] = c.start(addr, &servertest.Engine{}, server.Options{})
		}
		used := func(f *client.Fleet, state client.NodeState) map[string]bool {
			all := map[string]bool{}
			for _, s := range f.Status() {
				if s.State == state {
					all[s.Addr] = true
				}
			}
			return all
		}
		begin := func(rank int) *client.Fleet {
			o := c.options(addrs...)
			o.Rank = rank
			f, err := client.New(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			return f
		}
		f, g := begin(0), begin(1)
		time.Sleep(10 * time.Second)
		first := used(f, client.Ready)
		other := used(g, client.Ready)
		if len(first) != 8 || len(other) != 8 || len(f.Status()) != 8 {
			t.Fatalf("%d and %d nodes are used, %d are told of", len(first), len(other), len(f.Status()))
		}
		both, dead := 0, ""
		for addr := range first {
			dead = addr
			if other[addr] {
				both++
			}
		}
		if both == 8 {
			t.Error("both ranks use the same nodes")
		}
		nodes[dead].kill()
		time.Sleep(20 * time.Second)
		if up := used(f, client.Ready); len(up) != 8 || up[dead] {
			t.Errorf("%d nodes are used after one died", len(up))
		}
		if r := ask(f, rangeOf(0, 0, 8), room); r.Err != nil {
			t.Error(r.Err)
		}
		c.start(dead, &servertest.Engine{}, server.Options{})
		time.Sleep(2 * time.Minute)
		if up := used(f, client.Ready); len(up) != 8 || !up[dead] {
			t.Errorf("%d nodes are used after it came back: %v", len(up), up)
		}
		dials := 0
		for _, n := range nodes {
			n.mu.Lock()
			dials += n.dials
			n.mu.Unlock()
		}
		if asked := 8 + 8; dials > asked+8+8+2 { // by both ranks, before they knew what the job pins
			t.Errorf("%d connections", dials)
		}
		f.Close()
		g.Close()
	})
}

// A loop whose batches keep many nodes busy is given more of them.
func TestMoreNodesForAFastLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var addrs []string
		for i := range 40 {
			addrs = append(addrs, fmt.Sprint("n", i))
			c.start(addrs[i], &servertest.Engine{Samples: 1 << 14, Cores: fleetCores, SampleTime: perSample(2) + time.Duration(i)*997}, server.Options{})
		}
		r := &trainer{host: 5 * time.Millisecond, ahead: 3, phases: []phase{{40 * time.Second, 100 * time.Millisecond}}}
		most := 0
		alone(t, c, r, addrs, func(int) { most = max(most, len(r.loader.Fleet().Status())) })
		if most < 19 || most > 30 { // 5 nodes would feed it, and four times as many are used
			t.Errorf("%d nodes are used", most)
		}
		r.loader.Close()
	})
}
