package control_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/feedwater-io/feedwater/control"
)

// Many trainers and many nodes under the control laws, event by event in virtual time: nodes hand samples out by
// package share, trainers choose by package pick and ask ahead by Pace and Window, steps reach the nodes' books of
// package pulse, and a Scaler settles how many nodes there are. What lies between is calls that come a millisecond
// later: no goroutine, no clock, no client or server.

const (
	crowdJobs   = 4
	crowdBatch  = 8
	crowdStep   = 0.5  // seconds
	crowdPeriod = 15.0 // of the scaler
	crowdStart  = 20.0 // until a node that was asked for is there
	crowdListed = 5.0  // until trainers hear that a node is gone
)

// event is what happens at a time.
type event struct {
	at  float64
	seq uint64 // of two at once the first goes first
	do  func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// clock is virtual time: a heap of events.
type clock struct {
	now    float64
	events heap
}

// heap is events, the next one first.
type heap struct {
	all   []event
	count uint64 // that there were
}

// after has something happen later.
func (c *clock) after(seconds float64, do func()) { c.events.push(c.now+seconds, do) }

// run has happen what happens before the end.
func (c *clock) run(end float64) {
	for len(c.events.all) > 0 && c.events.all[0].at < end {
		next := c.events.pop()
		c.now = next.at
		next.do()
	}
	c.now = end
}

func (h *heap) push(at float64, do func()) {
	h.count++
	h.all = append(h.all, event{at, h.count, do})
	for i := len(h.all) - 1; i > 0; {
		up := (i - 1) / 2
		if h.all[up].before(&h.all[i]) {
			return
		}
		h.all[up], h.all[i] = h.all[i], h.all[up]
		i = up
	}
}

func (h *heap) pop() event {
	first, last := h.all[0], len(h.all)-1
	h.all[0], h.all[last] = h.all[last], event{}
	h.all = h.all[:last]
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && h.all[down].before(&h.all[least]) {
				least = down
			}
		}
		if least == i {
			return first
		}
		h.all[i], h.all[least] = h.all[least], h.all[i]
		i = least
	}
}

// crowd is all ranks and nodes.
type crowd struct {
	t *testing.T
	clock
	sample  float64 // core-seconds; a node has one core
	cores   int     // of the machine that all nodes are on; 0: each has one of its own
	growth  map[string]*control.Growth
	ranks   []*rank
	nodes   []*node // that there are
	started int
	wanted  int
	version int // of nodes
	law     control.Scaler
	periods []period
	taken   float64 // node-seconds
	counted float64 // when they were
}

// period is what the scaler saw and said.
type period struct {
	at             float64
	up, wanted     int
	idle           float64 // share of GPU time lost in it, the worst rank's
	moves, batches int
}

// newCrowd has so many ranks, fed by need nodes, of which there are now so many.
func newCrowd(t *testing.T, ranks, need, now int) *crowd {
	c := &crowd{t: t, sample: float64(need) / (float64(ranks) * crowdBatch / crowdStep), wanted: now, growth: map[string]*control.Growth{}}
	for i := range crowdJobs {
		j := newJob(fmt.Sprint("job", i), ranks/crowdJobs, uint64(i)+crowdJobs**crowdSeed)
		for k := range j.world {
			c.ranks = append(c.ranks, newRank(c, j, k))
		}
	}
	c.start(now)
	c.law.LimitNodes(crowdPeriod, float64(now), true, false, now, now) // somebody wanted them
	for i, r := range c.ranks {
		c.after(0.001*float64(i%97), r.begin)
	}
	c.after(crowdPeriod, c.settle)
	return c
}

// sampleSeconds is what a sample takes a node: the longer, the more nodes share the machine.
func (c *crowd) sampleSeconds(n *node) float64 {
	shared := 1.0
	if c.cores > 0 {
		shared = math.Max(1, float64(len(c.nodes))/float64(c.cores))
	}
	return c.sample * n.slow * shared
}

// send has a message arrive.
func (c *crowd) send(do func()) { c.after(0.001, do) }

func (c *crowd) time() time.Time { return time.Unix(0, int64(c.now*1e9)) }

// start has so many nodes more.
func (c *crowd) start(count int) {
	c.tally()
	for range count {
		c.nodes = append(c.nodes, newNode(c, fmt.Sprintf("10.1.%d.%d:7070", c.started/250, c.started%250)))
		c.started++
	}
	c.version++
}

// tally counts the time of the nodes that there are.
func (c *crowd) tally() {
	c.taken += float64(len(c.nodes)) * (c.now - c.counted)
	c.counted = c.now
}

// settle ends a period: as `feedwater scaler` does it adds up what nodes say that each job wants, and starts or ends
// nodes.
func (c *crowd) settle() {
	claims, starved := map[string]*control.NodeEstimate{}, map[string]bool{}
	for _, n := range c.nodes {
		n.measure()
		for _, j := range n.book.Jobs(c.time()) {
			r := j.Reading()
			r.Cost = n.cost(j.Name)
			if claims[j.Name] == nil {
				claims[j.Name] = &control.NodeEstimate{}
			}
			claims[j.Name].Add(n.name, r.NodesNeeded(n.answer.Effective), r.Cost/n.answer.Effective, false)
			starved[j.Name] = starved[j.Name] || r.Starved
		}
	}
	need, blind := 0.0, false
	for name, claim := range claims {
		if c.growth[name] == nil {
			c.growth[name] = &control.Growth{}
		}
		n, _ := claim.Bound(c.growth[name], crowdPeriod)
		need += n
		blind = blind || n == 0 && starved[name]
	}
	n := c.law.LimitNodes(crowdPeriod, need, true, blind, c.wanted, c.wanted)
	c.note(n)
	switch more := n - c.wanted; {
	case more > 0:
		c.after(crowdStart, func() { c.start(more) })
	case more < 0:
		c.drain(-more)
	}
	c.wanted = n
	c.after(crowdPeriod, c.settle)
}

// note keeps what the period showed.
func (c *crowd) note(wanted int) {
	p := period{at: c.now, wanted: wanted, up: len(c.nodes)}
	for _, r := range c.ranks {
		p.idle = math.Max(p.idle, (r.stalled-r.noted)/crowdPeriod)
		p.moves, p.batches = p.moves+r.moves, p.batches+r.batches
		r.noted, r.moves, r.batches = r.stalled, 0, 0
	}
	c.periods = append(c.periods, p)
	c.t.Logf("%3.0f s: %d nodes up, %d wanted; worst rank idle %.2f %%; %d moves of %d batches", p.at, p.up, p.wanted, 100*p.idle, p.moves, p.batches)
}

// drain ends so many nodes, the newest, in order: they get no more wants, and finish those that they have.
func (c *crowd) drain(count int) {
	c.tally()
	left := max(len(c.nodes)-count, 0)
	for _, n := range c.nodes[left:] {
		for _, s := range n.streams {
			s.leaving = true
		}
	}
	c.nodes = c.nodes[:left]
	c.version++
}

// kill has every so many-th node fall silent for good. As many others are started, and trainers are told.
func (c *crowd) kill(every int) {
	c.tally()
	var left, dead []*node
	for i, n := range c.nodes {
		if i%every == 0 {
			n.dead = true
			dead = append(dead, n)
			continue
		}
		left = append(left, n)
	}
	c.nodes = left
	c.after(crowdListed, func() { c.version++ })
	c.after(crowdStart, func() { c.start(len(dead)) })
}
