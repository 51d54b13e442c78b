// Package pulse keeps how training loops fare: of every job and rank the latest steps, as trainers tell them, and what
// follows from them for people. Whatever a trainer tells, it takes no more memory than one rank's, and nothing but its
// own rank's figures change. The package judges nothing (see verdict), starts no goroutine and has no clock: callers
// pass the time.
package pulse

import (
	"math"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Step is one turn of a training loop, in seconds. Unknown parts are NaN.
type Step struct {
	// Number counts over the whole job, equal on all ranks.
	Number uint64
	// Seconds it took, and the part of it that the loop was blocked in next.
	Seconds, Wait float64
	// Idle is the part in which the GPU stood still for data, Transfer the part in which it waited for the copy.
	Idle, Transfer float64
}

// longest is what no step takes, in seconds.
const longest = 24 * 3600

// newStep takes a step as told. What cannot be is left out: ok is false, or the part is unknown.
func newStep(p *pb.Step) (s Step, ok bool) {
	s = Step{Number: p.GetNumber(), Seconds: p.GetStep(), Wait: p.GetWait(), Idle: math.NaN(), Transfer: math.NaN()}
	if !(s.Seconds > 0 && s.Seconds <= longest && s.Wait >= 0) { // also not a number
		return Step{}, false
	}
	s.Wait = min(s.Wait, s.Seconds)
	if p.Idle != nil {
		s.Idle = clampPart(*p.Idle, s.Wait) // a GPU does not stand still for data while its loop does not wait
	}
	if p.Transfer != nil {
		s.Transfer = clampPart(*p.Transfer, s.Seconds)
	}
	return s, true
}

func clampPart(seconds, whole float64) float64 {
	if !(seconds >= 0) || math.IsInf(seconds, 0) {
		return math.NaN()
	}
	return min(seconds, whole)
}

// ring is the latest steps, in the order of their numbers.
type ring struct {
	steps []Step
	next  int // where the next one goes, once it is full
}

// KeptSteps is how many steps of a rank are kept.
const KeptSteps = 512

// addStep takes a step. A number that is not behind the latest one says that the run began again elsewhere.
func (r *ring) addStep(s Step) {
	if last := r.last(); last != nil && s.Number <= last.Number {
		r.steps, r.next = r.steps[:0], 0
	}
	if len(r.steps) < KeptSteps {
		r.steps = append(r.steps, s)
		return
	}
	r.steps[r.next] = s
	r.next = (r.next + 1) % KeptSteps
}

func (r *ring) last() *Step {
	if len(r.steps) == 0 {
		return nil
	}
	return &r.steps[(r.next+len(r.steps)-1)%len(r.steps)]
}

// all is a copy, oldest first.
func (r *ring) all() []Step {
	return append(append(make([]Step, 0, len(r.steps)), r.steps[r.next:]...), r.steps[:r.next]...)
}
