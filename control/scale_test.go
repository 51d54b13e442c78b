package control_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/control"
)

// How many there are, for trying the laws with more than the test has time for.
var (
	crowdRanks = flag.Int("ranks", 32, "ranks of TestCrowd, a quarter in each job")
	crowdNodes = flag.Int("nodes", 125, "nodes of TestCrowd that would feed its ranks")
	crowdSeed  = flag.Uint64("seed", 1, "of TestCrowd's noise")
)

// When what happens, in seconds. From crowdCalm on nobody waits any more.
const (
	crowdCalm   = 210.0
	crowdDeaths = 285.0
	crowdSlows  = 345.0
	crowdEnds   = 420.0
)

// A third of the nodes that it takes are there at first. The pool grows to what feeds all ranks and stays there, while
// a tenth of the nodes die at once and, later, one of them becomes five times slower; and what a batch takes of
// messages and decisions does not grow with the crowd.
func TestCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("as when the race detector runs, to which one goroutine is of no interest")
	}
	small := playCrowd(t, 16, 60)
	large := playCrowd(t, *crowdRanks, *crowdNodes)
	if ratio := large.events / small.events; ratio > 1.15 {
		t.Errorf("%.2f times as many events for a batch as with 16 ranks on 60 nodes", ratio)
	}
}

// Nodes that share a machine of half of the cores that it takes make one another slower from there on, and each says
// that more are needed. Those that bring nothing are not followed by others.
func TestCrowdOnOneMachine(t *testing.T) {
	const need, cores = 12, 6
	c := newCrowd(t, 16, need, 4)
	c.cores = cores
	c.run(crowdEnds)
	most := 0
	for _, p := range c.periods {
		most = max(most, p.wanted)
	}
	if enough := need*115/100 + crowdJobs; most > enough || most < cores {
		t.Errorf("%d nodes wanted on a machine of %d cores, by jobs that take %d", most, cores, enough)
	}
}

// crowdOutcome is what a run showed from crowdCalm on.
type crowdOutcome struct {
	calm   float64 // share of time that the worst rank stalls until crowdDeaths
	stall  float64 // and until crowdEnds
	wanted []int   // by period
	hours  float64 // node-hours over what is needed, share
	uneven float64 // samples of the node that made most, over the mean of those that were there from crowdSlows on and not slow
	events float64 // for a batch
	extra  float64 // samples made for nothing, share
}

func playCrowd(t *testing.T, ranks, nodes int) crowdOutcome {
	t.Helper()
	c := newCrowd(t, ranks, nodes, nodes/3)
	c.run(crowdCalm)
	before := c.count()
	c.run(crowdDeaths)
	calm := before.until(c.count(), float64(nodes))
	c.kill(10)
	c.run(crowdSlows)
	made := map[*node]int{}
	for _, n := range c.nodes {
		made[n] = n.made
	}
	slow := c.nodes[1]
	slow.slow = 5
	c.run(crowdEnds)
	delete(made, slow)
	o := before.until(c.count(), float64(nodes))
	o.calm, o.uneven = calm.stall, c.uneven(made)
	for _, p := range c.periods {
		if p.at > crowdCalm {
			o.wanted = append(o.wanted, p.wanted)
		}
	}
	t.Logf("%d ranks, %d nodes needed: wanted %v, node-hours %+.0f %%; the worst rank stalls for %.2f %% while nothing is wrong, %.2f in all; work of a node at most %.2f of the mean; %.0f events for a batch; %.2f %% more samples made",
		ranks, nodes, o.wanted, 100*o.hours, 100*o.calm, 100*o.stall, o.uneven, o.events, 100*o.extra)
	o.check(t, nodes)
	c.draw(nodes)
	return o
}

func (o *crowdOutcome) check(t *testing.T, nodes int) {
	t.Helper()
	need := float64(nodes)
	if o.calm > 0.005 || o.stall > 0.02 {
		t.Errorf("the worst rank stalls for %.2f %% while nothing is wrong, %.2f in all", 100*o.calm, 100*o.stall)
	}
	last := float64(o.wanted[len(o.wanted)-1])
	if slices.Min(o.wanted) < nodes || last > 1.2*need+crowdJobs || o.hours > 0.31 { // 1.15, rounded up for each job, and what is read with noise
		t.Errorf("wanted %v of %d needed, node-hours %+.0f %%", o.wanted, nodes, 100*o.hours)
	}
	if n := crowdTurns(o.wanted); n > 2 {
		t.Errorf("wanted %v: %d times up or down again", o.wanted, n)
	}
	if o.uneven > 1.5 || o.extra > 0.05 {
		t.Errorf("a node made %.2f times the mean, and %.2f %% were made for nothing", o.uneven, 100*o.extra)
	}
}

// crowdTurns is how often numbers that rose fall, and the other way round.
func crowdTurns(all []int) (n int) {
	last := 0
	for i := 1; i < len(all); i++ {
		if d := all[i] - all[i-1]; d != 0 {
			if d*last < 0 {
				n++
			}
			last = d
		}
	}
	return n
}

// crowdCount is what was done by a time.
type crowdCount struct {
	events       uint64
	nodeSeconds  float64
	stalled      []float64 // by rank
	steps, extra int
	now          float64
}

func (c *crowd) count() crowdCount {
	c.tally()
	n := crowdCount{events: c.events.count, nodeSeconds: c.taken, now: c.now}
	for _, r := range c.ranks {
		n.stalled = append(n.stalled, r.stalled)
		n.steps, n.extra = n.steps+int(r.step), n.extra+r.extra
	}
	return n
}

// until is what was done from one count to another, where so many nodes are needed.
func (n *crowdCount) until(end crowdCount, nodes float64) (o crowdOutcome) {
	seconds, steps := end.now-n.now, float64(end.steps-n.steps)
	for i := range n.stalled {
		o.stall = max(o.stall, (end.stalled[i]-n.stalled[i])/seconds)
	}
	o.hours = (end.nodeSeconds-n.nodeSeconds)/(nodes*seconds) - 1
	o.events = float64(end.events-n.events) / steps
	o.extra = float64(end.extra-n.extra) / (steps * crowdBatch)
	return o
}

// uneven is how much more one node made than the mean, of those that are still there, since they had made so many
// samples.
func (c *crowd) uneven(made map[*node]int) float64 {
	var sum, most, n float64
	for _, node := range c.nodes {
		if before, ok := made[node]; ok {
			work := float64(node.made - before)
			sum, most, n = sum+work, math.Max(most, work), n+1
		}
	}
	return most * n / sum
}

// draw draws the run, the larger one last, if pictures are asked for.
func (c *crowd) draw(nodes int) {
	if control.Plots() == "" {
		return
	}
	var at, idle []float64
	var up, wanted []int
	for _, p := range c.periods {
		at, idle, up, wanted = append(at, p.at), append(idle, p.idle), append(up, p.up), append(wanted, p.wanted)
	}
	text := control.Picture(crowdEnds, float64(nodes), at, idle, up, wanted)
	if err := os.WriteFile(filepath.Join(control.Plots(), "crowd.svg"), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}
