// Package control holds the laws that turn measured training steps into decisions: when a batch is due, how many
// batches to have ready, what a job would take if data were always there, and how many nodes that needs. It is
// arithmetic only, in seconds, samples and core-seconds: no clock, no goroutine, nothing of ours but the packages below
// it; callers pass time and own the values, which are not for two goroutines at once. docs/control.md says what the
// laws are for.
//
// Whatever is measured wrongly, not a number, negative or huge, gives a finite answer: it may cost nodes, memory or a
// place in a queue, never a batch.
package control

import "math"

// Step is one turn of a training loop, from one return of next to the following one. Seconds.
type Step struct {
	// Number counts over the whole job, equal on all ranks, by which their steps are matched.
	Number uint64
	// Seconds it took, and the part of it that the loop was blocked in next.
	Seconds, Wait float64
	// Idle is the part in which the GPU stood still for data; NaN: unknown, which is never 0.
	Idle float64
}

// longest is what no step takes, in seconds.
const longest = 24 * 3600

// sanitize makes s plausible; false: it is no step at all.
func (s Step) sanitize() (Step, bool) {
	if !(s.Seconds > 0 && s.Seconds <= longest) { // also not a number
		return Step{}, false
	}
	if !(s.Wait >= 0) {
		s.Wait = 0
	}
	s.Wait = min(s.Wait, s.Seconds)
	switch {
	case !(s.Idle >= 0), math.IsInf(s.Idle, 0):
		s.Idle = math.NaN()
	default:
		s.Idle = min(s.Idle, s.Wait) // what the GPU stands still for besides is not for want of data
	}
	return s, true
}

// hasIdle reports whether the step's idle is known.
func (s Step) hasIdle() bool { return !math.IsNaN(s.Idle) }

// lostSeconds is what data cost the step: the idle, or where that is unknown the wait, which is never less.
func (s Step) lostSeconds() float64 {
	if s.hasIdle() {
		return s.Idle
	}
	return s.Wait
}

const (
	pauseFactor = 10.0 // a pause is longer than so many usual steps
	pauseLost   = 0.1  // and less than this share of it was lost to data
	pausesInRow = 4    // so many are no pauses: steps have become longer
	usualWeight = 0.05 // of the newest step
)

// usualStep is what a step takes without what data cost it. It tells steps from pauses: evaluation, a checkpoint.
type usualStep struct {
	seconds float64 // moving average; 0: no step yet
	pauses  int     // in a row
}

// isPause reports whether a step of so many seconds was a pause, and learns from it if not. active is the step without
// idle.
func (u *usualStep) isPause(seconds, active, lost float64) bool {
	if u.seconds > 0 && seconds > pauseFactor*u.seconds && lost < pauseLost*seconds {
		u.pauses++
		if u.pauses < pausesInRow {
			return true
		}
		u.seconds = 0
	}
	u.pauses = 0
	if u.seconds == 0 {
		u.seconds = active
	}
	u.seconds += usualWeight * (active - u.seconds)
	return false
}

// Longest is the largest of the last 64 to 128 values. The zero value is ready.
type Longest struct {
	newer, older float64
	count        int
}

const longestHalf = 64

// Add takes a value; what is not a positive number is left out.
func (l *Longest) Add(x float64) {
	if !(x > 0) || math.IsInf(x, 0) {
		return
	}
	if l.count == longestHalf {
		l.newer, l.older, l.count = 0, l.newer, 0
	}
	l.count++
	l.newer = max(l.newer, x)
}

// Value is the largest; 0 before the first.
func (l *Longest) Value() float64 { return max(l.newer, l.older) }

// Average is a moving average whose first value counts in full; 0: none yet.
type Average float64

// Add takes a value with the given weight; what is not a positive number is left out.
func (a *Average) Add(x, weight float64) {
	switch {
	case !(x > 0) || math.IsInf(x, 0):
	case *a == 0:
		*a = Average(x)
	default:
		*a += Average(weight) * (Average(x) - *a)
	}
}

// SampleCost is a moving average of the core-seconds that a sample takes a node; 0: unknown yet.
type SampleCost float64

// AddBatch takes the core-seconds that samples took together, with the given weight. A batch of no samples is left out.
func (cost *SampleCost) AddBatch(coreSeconds float64, samples int, weight float64) {
	if samples > 0 {
		(*Average)(cost).Add(coreSeconds/float64(samples), weight)
	}
}
