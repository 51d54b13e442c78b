package control

import (
	"fmt"
	"math"
	"testing"
)

var nan, inf = math.NaN(), math.Inf(1)

// Script 2: when another rank starves at each step, every rank's own mean holds the others' stalls; lined up by step
// none is left.
func TestRanksAreLinedUp(t *testing.T) {
	const ranks, step, idle = 4, 0.2, 0.1
	var j Job
	for k := range uint64(100) {
		for r := range uint32(ranks) {
			s := Step{Number: k, Seconds: step}
			if uint64(r) == k%ranks {
				s.Idle, s.Wait = idle, idle
			}
			j.AddReport(Report{Rank: r, World: ranks, Samples: 64, Steps: []Step{s}})
		}
	}
	r := j.ReadPeriod(15)
	if c := ranks * 64 / r.Demand; math.Abs(c/0.1-1) > 0.01 {
		t.Errorf("a step without idle takes %.4f s, want 0.1", c)
	}
	if r.Idle != 0.5 || math.Abs(r.Supply-ranks*64/step) > 1e-9 || r.UpperBound {
		t.Errorf("%+v", r)
	}
}

// An asynchronous loop submits in 20 ms what the GPU runs in 100: wait is no idle, and does not scale.
func TestWaitThatTheGPUDoesNotFeel(t *testing.T) {
	var j Job
	for k := range uint64(150) {
		j.AddReport(Report{World: 1, Samples: 100, Steps: []Step{{Number: k, Seconds: 0.1, Wait: 0.08}}})
	}
	if r := j.ReadPeriod(15); math.Abs(r.Demand-1000) > 1e-6 || r.Idle != 0 || math.Abs(r.Wait-0.8) > 1e-9 {
		t.Errorf("%+v", r)
	}
}

// Idle without wait is not for want of data: it scales nothing, and no batch is due sooner for it.
func TestIdleWithoutWait(t *testing.T) {
	var fed, idle Job
	var pace Pace
	for k := range uint64(150) {
		fed.AddReport(Report{World: 1, Samples: 100, Steps: []Step{{Number: k, Seconds: 0.1}}})
		s := Step{Number: k, Seconds: 0.1, Idle: 0.08}
		idle.AddReport(Report{World: 1, Samples: 100, Steps: []Step{s}})
		pace.Add(s)
	}
	a, b := fed.ReadPeriod(15), idle.ReadPeriod(15)
	a.Cost, b.Cost = 0.008, 0.008
	if a != b || b.Idle != 0 {
		t.Errorf("fed %+v, idle without wait %+v", a, b)
	}
	var s Scaler
	if w := s.DecideNodes(15, []Reading{b}, []Load{{Cores: 8, CoreSeconds: 60, BusySeconds: 8}}, 2); w.Nodes != 2 {
		t.Errorf("of 2 nodes, which feed it, %+v are wanted", w)
	}
	if !near(pace.Seconds(), 0.1) {
		t.Errorf("a pace of %v s", pace.Seconds())
	}
}

// A rank that reports nothing, or twice, holds nobody up.
func TestReportsThatGetLost(t *testing.T) {
	var j Job
	for k := range uint64(300) {
		for r := range uint32(3) { // of 4
			s := []Step{{Number: k, Seconds: 0.1}}
			j.AddReport(Report{Rank: r, World: 4, Samples: 10, Steps: s})
			j.AddReport(Report{Rank: r, World: 4, Samples: 10, Steps: s})
		}
	}
	if len(j.open) > maxOpen {
		t.Errorf("%d numbers are open", len(j.open))
	}
	if r := j.ReadPeriod(15); math.Abs(r.Demand-400) > 1e-6 {
		t.Errorf("%+v", r)
	}
}

// Steps that have become ten times longer for good are steps, not pauses.
func TestLongerSteps(t *testing.T) {
	var j Job
	feed := func(from, n uint64, seconds float64) Reading {
		for k := from; k < from+n; k++ {
			j.AddReport(Report{World: 1, Samples: 100, Steps: []Step{{Number: k, Seconds: seconds}}})
		}
		return j.ReadPeriod(15)
	}
	feed(0, 100, 0.1)
	if r := feed(100, 2, 60); math.Abs(r.Demand-1000) > 1e-6 {
		t.Errorf("two pauses: %+v", r)
	}
	feed(102, 20, 2)
	if r := feed(122, 20, 2); math.Abs(r.Demand-50) > 1 {
		t.Errorf("longer steps: %+v", r)
	}
}

func TestNoStepForLong(t *testing.T) {
	var j Job
	for k := range uint64(100) {
		j.AddReport(Report{World: 1, Samples: 100, Steps: []Step{{Number: k, Seconds: 0.1}}})
	}
	for i, demand := range []float64{1000, 1000, 0} {
		if r := j.ReadPeriod(15); math.Abs(r.Demand-demand) > 1e-6 || !r.Active || r.Starved {
			t.Errorf("period %d: %+v", i, r)
		}
	}
	j.AddReport(Report{World: 1, Samples: 100, Blocked: true})
	var s Scaler
	if r := j.ReadPeriod(15); !r.Starved {
		t.Errorf("blocked: %+v", r)
	} else if w := s.DecideNodes(15, []Reading{r}, nil, 4); w.Nodes != 6 || !w.UpperBound {
		t.Errorf("blocked with 4 nodes: %+v", w)
	}
}

// Before anything is known one node is wanted, and of a job that waits with no nodes four at most.
func TestFirstTrainer(t *testing.T) {
	var s Scaler
	var j Job
	if w := s.DecideNodes(15, nil, nil, 0); w.Nodes != 0 {
		t.Errorf("nobody asks: %+v", w)
	}
	j.AddReport(Report{World: 8, Samples: 256, Blocked: true})
	if w := s.DecideNodes(15, []Reading{j.ReadPeriod(15)}, nil, 0); w.Nodes != 1 {
		t.Errorf("the first trainer: %+v", w)
	}
}

// Nodes of which some are slow are as many as their mean speed says; one that does not say how fast it is is believed
// as it is.
func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		nodes   []int
		seconds []float64
		want    float64
	}{
		"none": {nil, nil, 0}, "one": {[]int{7}, []float64{0.1}, 7}, "alike": {[]int{7, 5, 7}, []float64{0.1, 0.1, 0.1}, 7},
		"one of ten is five times slower": {[]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 100}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 5}, 22},
		"the slow one alone knows it all": {[]int{10, 0, 100}, []float64{1, 1, 5}, 28}, "one does not say": {[]int{7, 9}, []float64{0.1, 0}, 9},
		"nonsense": {[]int{7, 9, 3}, []float64{nan, -1, inf}, 9}, "unknown": {[]int{0, 0}, []float64{0.1, 0.2}, 0},
	} {
		var claim NodeEstimate
		for i := range c.nodes {
			claim.Add(fmt.Sprint(i), c.nodes[i], c.seconds[i], false)
		}
		if n, blind := claim.Nodes(); n != c.want || blind {
			t.Errorf("%s: %v nodes, want %v", name, n, c.want)
		}
	}
}

func TestPaceAndDue(t *testing.T) {
	var p Pace
	for i := range 3 {
		p.Add(Step{Number: uint64(i), Seconds: 0.1})
	}
	if p.Seconds() != 0 || p.DueIn(5) != 5*unknownPace {
		t.Errorf("known after three steps: %v", p.Seconds())
	}
	for i := range 16 { // a rank that waits for starving peers in three steps of four
		s := Step{Seconds: 0.1}
		if i%4 != 0 {
			s.Seconds = 0.5
		}
		p.Add(s)
	}
	if !near(p.Seconds(), 0.4) || !near(p.DueIn(15), 6) || p.DueIn(-1) != 0 {
		t.Errorf("%v s, due %v", p.Seconds(), p.DueIn(15))
	}
	for i := range 16 { // the host of an asynchronous loop runs ahead for three steps, once its peers have what they waited for
		s := Step{Seconds: 0.01}
		if i%8 > 2 {
			s.Seconds = 0.2
		}
		p.Add(s)
	}
	if !near(p.Seconds(), 1.03/8) {
		t.Errorf("a pace of %v s of steps that take a GPU 0.2", p.Seconds())
	}
	for range 16 {
		p.Add(Step{Seconds: 0.1})
	}
	p.Add(Step{Seconds: 60}) // evaluation
	if !near(p.DueIn(15), 1.5) {
		t.Errorf("after a pause due %v", p.DueIn(15))
	}
}

// TestDueOfALoopThatCostsNothing: batches come in bursts of four, and all of its time the loop waits for peers. What it
// has ahead is not due at once.
func TestDueOfALoopThatCostsNothing(t *testing.T) {
	var p Pace
	for i := range 16 {
		s := Step{Seconds: 1e-6}
		if i%4 == 0 {
			s.Seconds = 0.4
		}
		p.Add(s)
	}
	if !near(p.Seconds(), 0.1) || p.DueIn(100) < 3.5 {
		t.Errorf("%v s, the hundredth due in %v s", p.Seconds(), p.DueIn(100))
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-3 }

func TestWindow(t *testing.T) {
	var w Window
	if n := w.Batches(0.1, 2); n != 0 {
		t.Errorf("nothing is known, window %d", n)
	}
	w.AddArrival(0.35)
	if n := w.Batches(0.1, 2); n != 24+2 {
		t.Errorf("window %d", n)
	}
	if n := w.Batches(1, 2); n != 3+2 {
		t.Errorf("a slow loop: window %d", n)
	}
	for range 3 {
		w.AddStep(Step{Seconds: 0.1, Wait: 0.05, Idle: 0.05})
	}
	grown := w.Batches(0.1, 0)
	for range 2000 {
		w.AddStep(Step{Seconds: 0.1})
	}
	if n := w.Batches(0.1, 0); grown != 9 || n != 6 {
		t.Errorf("window %d after stalls, %d later", grown, n)
	}
	for range 2 * longestHalf {
		w.AddArrival(0.05)
	}
	if n := w.Batches(0.1, 0); n != 3 {
		t.Errorf("window %d when batches are quick again", n)
	}
}

// A meter that lies costs nodes or memory: every answer stays finite and plausible, and a job that runs has a node.
func TestLies(t *testing.T) {
	lies := []float64{nan, inf, -inf, -1, 0, 1e-300, 1e300, math.MaxFloat64}
	for _, a := range lies {
		for _, b := range lies {
			for _, c := range lies {
				lie(t, a, b, c)
			}
		}
	}
}

func lie(t *testing.T, a, b, c float64) {
	t.Helper()
	var j Job
	var p Pace
	var w Window
	var s Scaler
	var cost SampleCost
	for k := range uint64(40) {
		step := Step{Number: k * (1 + k%3), Seconds: a, Wait: b, Idle: c}
		if k%2 == 0 {
			step.Seconds = 0.1
		}
		p.Add(step)
		w.AddStep(step)
		w.AddArrival(a)
		j.AddReport(Report{Rank: uint32(k) % 9, World: 8, Samples: math.MaxUint32, Steps: []Step{step}})
		cost.AddBatch(b, int(k)-2, c)
	}
	r := j.ReadPeriod(c)
	r.Cost = float64(cost)
	if !(r.Demand >= 0) || math.IsInf(r.Demand, 0) || r.Demand > mostFaster*MaxSamples/1e-9 {
		t.Errorf("%v %v %v: demand %v", a, b, c, r.Demand)
	}
	if due := p.DueIn(10); !(due >= 0) || due > 10*longest {
		t.Errorf("%v %v %v: due %v", a, b, c, due)
	}
	if n := w.Batches(p.Seconds(), b); n < 0 || n > windowMost {
		t.Errorf("%v %v %v: window %d", a, b, c, n)
	}
	loads := []Load{{Cores: a, CoreSeconds: b, BusySeconds: c}, {Cores: 16, CoreSeconds: b, BusySeconds: c}, {Cores: c, CoreSeconds: a, BusySeconds: b}}
	readings := []Reading{r, {Demand: a, Cost: b, Active: true}, {Demand: c, Cost: a, UpperBound: true, Active: true}}
	for _, now := range []int{-1, 0, 3} {
		n := s.DecideNodes(a, readings, loads, now).Nodes
		if n < 1 || n > maxNodes || now >= 0 && n > max(2*now, now+4) {
			t.Errorf("%v %v %v: %d nodes of %d", a, b, c, n, now)
		}
	}
}

// Nodes that were asked for and do not come take nothing back, however long that takes: an engine has them in a queue.
// What no job needs any more goes after 120 s all the same.
func TestNodesThatDoNotCome(t *testing.T) {
	var s Scaler
	last := 0
	for i := range 80 { // 20 minutes
		now := 2
		if i < 20 {
			now = max(2, last) // what was asked for of late counts as starting
		}
		n := s.LimitNodes(15, 100, true, false, now, 2)
		if n < last {
			t.Fatalf("period %d: %d nodes after %d", i, n, last)
		}
		last = n
	}
	if last != 100 {
		t.Errorf("%d nodes, want 100", last)
	}
	for i := range 9 {
		if n := s.LimitNodes(15, 3, true, false, 2, 2); (i < 8) != (n == 100) || i == 8 && n != 3 {
			t.Errorf("%d s later: %d nodes", 15*(i+1), n)
		}
	}
}

// Six nodes each do more than five do, so that five seem enough where six are needed. One fewer is tried, and after that
// hardly ever again; one fewer that is enough is not forgotten.
func TestOneFewerThatIsTakenBack(t *testing.T) {
	var s Scaler
	n, changes := 6, 0
	s.LimitNodes(0, 6, true, false, 6, 6)
	period := func(need float64) {
		before := n
		if n = s.LimitNodes(15, need, true, false, n, n); n != before {
			changes++
		}
	}
	for range 240 { // an hour
		need := 6.0
		if n == 6 {
			need = 5
		}
		period(need)
	}
	if changes != 4 {
		t.Errorf("%d changes in an hour: after 300 s, and after 1200 s more", changes)
	}
	changes = 0
	for range 400 {
		period(4)
	}
	if n != 4 {
		t.Errorf("%d nodes, want 4", n)
	}
	for range 21 {
		period(3)
	}
	if n != 3 {
		t.Errorf("%d nodes 315 s after 4 were asked for last", n)
	}
}
