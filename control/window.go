package control

import "math"

const (
	windowSpare  = 2     // batches beside those on their way
	windowGrowth = 1.0   // batches more after a step that data held up
	windowDecay  = 0.002 // batches less after any other
	windowIdle   = 0.01  // share of a step from which on data held it up
	windowLeast  = 1e-4  // seconds; less is noise
	windowMost   = 1 << 10
)

// Window is how many batches one rank may have wanted or ready at once. The zero value is ready.
type Window struct {
	arrival Longest
	extra   float64
}

// AddArrival takes how long a batch took from its want to the trainer, in seconds, without the time it queued at the
// node: queueing is what a larger window makes more of.
func (w *Window) AddArrival(seconds float64) { w.arrival.Add(seconds) }

// AddStep takes the rank's latest step.
func (w *Window) AddStep(s Step) {
	s, ok := s.sanitize()
	if !ok {
		return
	}
	if lost := s.lostSeconds(); lost > windowIdle*s.Seconds && lost > windowLeast {
		w.extra = min(w.extra+windowGrowth, windowMost)
		return
	}
	w.extra = max(w.extra-windowDecay, 0)
}

// Batches is the window of a rank whose steps take pace seconds: what is used up while the slowest batch of late is on
// its way and, for silence more seconds, a node says nothing and nobody knows yet. 0: unknown. The caller bounds it by
// the memory there is.
func (w *Window) Batches(pace, silence float64) int {
	longest := w.arrival.Value()
	if !(silence >= 0) {
		silence = 0
	}
	if !(pace > 0) || longest == 0 {
		return 0
	}
	n := math.Ceil((longest+silence)/pace) + windowSpare + math.Floor(w.extra)
	return int(min(n, windowMost))
}
