package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// manyNodes are so many nodes of the laws alone.
func manyNodes(t *testing.T, count int) *crowd {
	c := &crowd{t: t, sample: 10 * time.Millisecond, nodes: map[string]*lawful{}}
	c.add(count)
	return c
}

func (c *crowd) options(rank int) client.Options {
	return client.Options{Plan: plan, Job: "job", Rank: rank, Nodes: c.addrs, Dial: c.dial, Seed: uint64(rank + 1)}
}

// used are the nodes that have made something, by address.
func (c *crowd) used() map[string]bool {
	all := map[string]bool{}
	for _, n := range c.all() {
		n.mu.Lock()
		if n.made > 0 {
			all[n.addr] = true
		}
		n.mu.Unlock()
	}
	return all
}

// Ranks that begin together on equal nodes begin with different ones, and each with some of them all.
func TestRanksBeginOnDifferentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranks = 8
		c := manyNodes(t, ranks)
		var fleets []*client.Fleet
		for rank := range ranks {
			f, err := client.New(c.options(rank))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			fleets = append(fleets, f)
		}
		time.Sleep(time.Second) // all have all nodes
		for rank, f := range fleets {
			f.Want(&client.Want{Name: rangeOf(0, uint64(8*rank), crowdBatch), Request: batch.Request{Dst: make([]byte, 1<<10)}, Done: func(client.Result) {}})
		}
		time.Sleep(10 * time.Second)
		if n := len(c.used()); n < ranks/2 { // of as many as there are nodes chance gives five
			t.Errorf("the first batches of %d ranks were made by %d nodes", ranks, n)
		}
		for _, f := range fleets {
			f.Close()
		}
	})
}

// A node that was let go of, since there was no need for it, is not one that is down: no other is taken in its place
// when there is need again.
func TestNodesThatWereLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := manyNodes(t, 100)
		f, err := client.New(c.options(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		for position := range uint64(2) { // what the second one costs is known
			f.Want(&client.Want{Name: rangeOf(0, crowdBatch*position, crowdBatch), Request: batch.Request{Dst: make([]byte, 1<<10)}, Done: func(client.Result) {}})
			time.Sleep(time.Second)
		}
		few, many := 8, 4*crowdBatch // with steps of a second, and of a sample's time
		for i, step := range []time.Duration{c.sample, time.Second, c.sample} {
			p := &pb.Pulse{World: 1}
			for k := range uint64(16) {
				p.Steps = append(p.Steps, &pb.Step{Number: k, Step: step.Seconds()})
			}
			f.Pulse(p)
			most := 0
			for range 100 {
				time.Sleep(500 * time.Millisecond)
				most = max(most, len(f.Status()))
			}
			if now, want := len(f.Status()), []int{many, few, many}[i]; now != want || most > many {
				t.Errorf("with steps of %s %d nodes, %d on the way, want %d", step, now, most, want)
			}
		}
		f.Close()
	})
}
