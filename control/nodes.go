package control

import (
	"math"
	"slices"
)

const (
	headroom        = 1.15
	effectiveWeight = 0.3  // of the newest period
	busyLeast       = 0.05 // share of the period that a node must have had work in, to tell what it can do
	downSeconds     = 120.0
	oneSeconds      = 300.0 // for one fewer: or else a demand between two numbers has a node come and go
	regretFactor    = 4     // times as long, each time that one fewer is taken back within downSeconds
	longestPatience = 3600.0
	blindGrowth     = 1.5 // where only waiting is known
	blindMost       = 4   // times the nodes that are there: until some of them come, no more are guessed
	growthFactor    = 2   // at most, per period; or
	growthNodes     = 4
	maxNodes        = 1 << 20
)

// Load is what one node did over one period.
type Load struct {
	// Cores it has.
	Cores float64
	// CoreSeconds it spent on making samples, and BusySeconds in which it had work in hand; a second in which it had
	// work for half of its cores counts half.
	CoreSeconds, BusySeconds float64
	// Silent tells that it counts as a node and does not answer.
	Silent bool
}

// Scaler turns demands into a number of nodes, period by period. The zero value is ready.
type Scaler struct {
	effective Average // core-seconds per second that a node does while it has work
	cores     Average
	requests  []pastRequest
	answer    float64 // the last one that was bounded
	patience  float64 // seconds for which no period may have asked for more, before it becomes one fewer; 0: oneSeconds
	onTrial   bool    // the answer became one fewer
	since     float64 // and so many seconds ago
}

// pastRequest is what a period asked for.
type pastRequest struct{ age, nodes float64 }

// Wanted is a Scaler's answer.
type Wanted struct {
	// Nodes that would feed all jobs.
	Nodes int
	// UpperBound tells that some job's demand is one.
	UpperBound bool
	// Effective is the cores' worth of work that a node does; 0: unknown.
	Effective float64
}

// DecideNodes ends a period of so many seconds. jobs are the readings of all jobs, loads those of all nodes that are
// known. now is how many nodes there are or are starting; negative: unknown, then nothing bounds the growth. More are
// wanted at once, fewer only when none of the last 120 s asked for more, one fewer when none of the last 300 s did.
func (s *Scaler) DecideNodes(seconds float64, jobs []Reading, loads []Load, now int) Wanted {
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		seconds = 1
	}
	silent := s.recordLoads(seconds, loads)
	need, active := s.sumNeeds(jobs)
	starved, bound := false, false
	for _, r := range jobs {
		starved, bound = starved || r.Starved, bound || r.UpperBound
	}
	blind := starved || bound && !HaveSpareTime(s.sumWork(jobs), len(loads)-int(silent))
	return Wanted{Nodes: s.LimitNodes(seconds, need+silent, active, blind, now, now), UpperBound: starved || bound, Effective: s.nodeCapacity()}
}

// LimitNodes is DecideNodes where it is known how many nodes are needed: it holds what was wanted, and bounds the growth. Nodes
// that were asked for and have not come take nothing back: they may wait for a machine. blind tells that the need is not
// all that a job would take. now counts those that start; up is those that are there, by which guesses are bounded.
func (s *Scaler) LimitNodes(seconds, need float64, active, blind bool, now, up int) int {
	n := max(need, 0)
	if blind {
		n = max(n, min(math.Ceil(blindGrowth*float64(max(now, 0))), float64(blindMost*max(up, 1))))
	}
	if active {
		n = max(n, 1)
	}
	if now >= 0 {
		n = min(n, max(float64(max(growthFactor*now, now+growthNodes)), s.answer))
	}
	answer := s.holdPeak(seconds, min(n, maxNodes), now)
	if now >= 0 {
		s.learnPatience(seconds, answer)
		s.answer = answer
	}
	return int(answer)
}

// learnPatience takes longer over one fewer where that had to be taken back, until one fewer was enough for once: fewer
// nodes may each do less, so that more of them are needed.
func (s *Scaler) learnPatience(seconds, answer float64) {
	s.since += seconds
	switch {
	case answer == s.answer-1:
		s.onTrial, s.since = true, 0
	case s.onTrial && answer > s.answer && s.since <= downSeconds:
		s.patience = min(regretFactor*max(s.patience, oneSeconds), longestPatience)
		s.onTrial = false
	case answer < s.answer, s.onTrial && s.since > oneSeconds:
		s.patience = oneSeconds
		s.onTrial = false
	}
}

// recordLoads takes what nodes did, and counts the silent ones.
func (s *Scaler) recordLoads(seconds float64, loads []Load) (silent float64) {
	done, cores, n, k := 0.0, 0.0, 0.0, 0.0
	for _, l := range loads {
		if l.Silent {
			silent++
			continue
		}
		if !(l.Cores > 0) || l.Cores > 1<<16 {
			continue
		}
		cores, k = cores+l.Cores, k+1
		if !(l.CoreSeconds > 0) || !(l.BusySeconds > busyLeast*seconds) {
			continue
		}
		done, n = done+min(l.CoreSeconds/l.BusySeconds, l.Cores), n+1
	}
	if n > 0 {
		s.effective.Add(done/n, effectiveWeight)
	}
	if k > 0 {
		s.cores.Add(cores/k, 1)
	}
	return silent
}

// nodeCapacity is what a node does, as measured or else as it has cores; 0: unknown.
func (s *Scaler) nodeCapacity() float64 {
	if s.effective > 0 {
		return float64(s.effective)
	}
	return float64(s.cores)
}

// NodesNeeded that would feed the job, of which each does so many cores' worth of work; 0: unknown, or it asks for
// nothing.
func (r Reading) NodesNeeded(effective float64) int {
	n := math.Ceil(headroom*r.Demand*r.Cost/effective - 1e-9)
	if !(n > 0) || math.IsInf(n, 0) {
		return 0
	}
	return int(min(n, maxNodes))
}

// sumNeeds is the nodes that all demands together take, and whether a job runs.
func (s *Scaler) sumNeeds(jobs []Reading) (nodes float64, active bool) {
	work := 0.0
	for _, r := range jobs {
		active = active || r.Active
		if w := r.Demand * r.Cost; w > 0 && !math.IsInf(w, 0) {
			work += w
		}
	}
	e := s.nodeCapacity()
	if e == 0 || work == 0 {
		return 0, active
	}
	return math.Ceil(headroom*work/e - 1e-9), active
}

// sumWork is how many nodes what all jobs get keeps at work; 0: unknown.
func (s *Scaler) sumWork(jobs []Reading) (nodes float64) {
	e := s.nodeCapacity()
	for _, r := range jobs {
		if w := r.Supply * r.Cost / e; w > 0 && !math.IsInf(w, 0) {
			nodes += w
		}
	}
	return nodes
}

// holdPeak keeps the number up until no request of the last 120 s asks for it, or of the last 300 s if it is one fewer.
func (s *Scaler) holdPeak(seconds, nodes float64, now int) float64 {
	for i := range s.requests {
		s.requests[i].age += seconds
	}
	patience := max(s.patience, oneSeconds)
	s.requests = slices.DeleteFunc(s.requests, func(w pastRequest) bool { return w.age > patience+1e-9 })
	s.requests = append(s.requests, pastRequest{0, nodes})
	most, there := s.peak(downSeconds), float64(now)
	if now < 0 {
		return most
	}
	if most > 1 && most == there-1 {
		most = s.peak(patience)
	}
	return min(most, max(nodes, there, s.answer))
}

// peak is the most that was asked for within so many seconds.
func (s *Scaler) peak(seconds float64) (most float64) {
	for _, r := range s.requests {
		if r.age <= seconds+1e-9 {
			most = max(most, r.nodes)
		}
	}
	return most
}
