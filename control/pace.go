package control

import (
	"cmp"
	"math"
)

const (
	paceSteps = 16   // that the pace is taken from
	paceRun   = 8    // in a row
	paceLeast = 4    // steps before it is known
	quickest  = 1e-6 // seconds: a step that takes no time is not unknown
	wentSteps = 32   // that tell how fast the loop goes: more than a burst of what one rank had ahead
)

// Pace is how fast one rank's loop goes when data is there. The zero value knows nothing yet.
type Pace struct {
	recent [paceSteps]float64 // without what data cost
	taken  [wentSteps]float64 // as they were
	steps  int
}

// Add takes the rank's latest step.
func (p *Pace) Add(s Step) {
	s, ok := s.sanitize()
	if !ok {
		return
	}
	p.recent[p.steps%paceSteps] = s.Seconds - s.lostSeconds()
	p.taken[p.steps%wentSteps] = s.Seconds
	p.steps++
}

// Seconds is what a step takes without what data cost it: the mean of the 8 in a row of the last 16 that took least. A
// longer mean would hold more of the stalls of peers that this rank waited for inside its steps; and a single step says
// nothing of an asynchronous loop, for after a stall its host submits some in no time. 0: unknown.
func (p *Pace) Seconds() float64 {
	n := min(p.steps, paceSteps)
	if n < paceLeast {
		return 0
	}
	run := min(n, paceRun)
	sum, least := 0.0, math.Inf(1)
	for i := range n {
		sum += p.recent[(p.steps-n+i)%paceSteps]
		if i >= run {
			sum -= p.recent[(p.steps-n+i-run)%paceSteps]
		}
		if i >= run-1 {
			least = min(least, sum)
		}
	}
	return max(least/float64(run), quickest)
}

// unknownPace is assumed of steps while nothing is known of them: fast, so that batches are due soon, but one after the
// other. If all were due at once a node could not tell the batch that one rank waits for from the tenth of another.
const unknownPace = 0.1

// dueShare of what a step takes of late is the least that lies between two batches' dues.
const dueShare = 0.7

// DueIn is when the batch is needed that has ahead others before it, in seconds from now: by the pace, but no less than
// dueShare of how fast the loop goes. By much less the batches that a rank which peers hold up needs last would be due,
// after a while, before those that its peers wait for: where nodes know no steps of theirs, ranks that step together
// would fall apart. By all of how fast it goes a rank that stalls would ask for no better.
func (p *Pace) DueIn(ahead int) float64 {
	return float64(max(ahead, 0)) * cmp.Or(max(p.Seconds(), dueShare*p.loopSeconds()), unknownPace)
}

// loopSeconds is what a step of late took, stalls and all: the mean without the longest, which may be a pause. 0:
// unknown.
func (p *Pace) loopSeconds() float64 {
	n := min(p.steps, wentSteps)
	if n < paceLeast {
		return 0
	}
	var sum, most float64
	for _, seconds := range p.taken[:n] {
		sum += seconds
		most = max(most, seconds)
	}
	return (sum - most) / float64(n-1)
}
