package pick

import (
	"cmp"
	"math"
)

const mostDoublings = 6

const (
	moveAge      = 0.1  // seconds: younger attempts may just not have been heard of
	moveGain     = 0.5  // of the rest, within which another node has to be done
	moveForecast = 2.0  // times the forecast after which any node that is quicker will do
	moveSlack    = 0.05 // seconds
	hedgeMakes   = 2.0  // makes after which a begun attempt is a straggler
	hedgeLeast   = 0.01 // seconds: a shorter make is measured as noise
	hedgeGuess   = 2.0  // seconds: a make of which nothing is known
)

// Attempt is a want that is at a node, and what was thought when it was sent there. Seconds.
type Attempt struct {
	// Due is when its batch is needed, from now; negative: it is late.
	Due float64
	// Age is since it was sent; Begun since the node began with it, negative: it has not.
	Age, Begun float64
	// Forecast of when it would be done, and Make of its batch there, as they were when it was sent.
	Forecast, Make float64
	// Rest is when the node would come to it, and Takes what the samples of its batch take there, as they are now. What
	// a node says of its work counts a batch that it has heard of: for such a one Rest is a make later, a margin for
	// forecasts that err.
	Rest, Takes float64
	// Moves is how often its want was moved before. Each time it lost its place in a node's queue, so the next move
	// takes twice the cause.
	Moves int
}

// Choice is what to do about an Attempt.
type Choice int

// The choices: to leave it, to cancel it and ask another node, to ask another node too.
const (
	Leave Choice = iota
	Move
	Hedge
)

// Choose decides about one of the batches that are needed next, where another node would have it in so many seconds: it
// is left alone as long as a make later would do. A move costs nothing; a hedge is for the caller's HedgeBudget to
// grant.
func (a Attempt) Choose(other float64) Choice {
	made, patience := max(a.Make, hedgeLeast), math.Exp2(float64(min(a.Moves, mostDoublings)))
	switch {
	case a.Due >= max(other, made)+made:
		return Leave
	case a.Begun >= 0:
		if rest := a.Takes - a.Begun; a.Due < rest && other < moveGain*rest || a.isStraggler(a.stragglerMakes(other)) {
			return Hedge
		}
	case a.Age > moveAge*patience && (other < moveGain*a.Rest || a.savedBy(other)),
		a.Age > moveForecast*a.Forecast*patience+moveSlack && other < a.Age:
		return Move
	}
	return Leave
}

// savedBy reports whether a batch that waits foreseeably comes too late here, and in time from another node, which has
// it in half of the time, or before this one comes to it.
func (a *Attempt) savedBy(other float64) bool {
	comes := a.Rest + a.Takes
	return a.Due < comes && other < min(a.Due, max(moveGain*comes, a.Rest))
}

// isStraggler reports whether its node has worked on it for longer than so many makes.
func (a *Attempt) isStraggler(makes float64) bool {
	return a.Begun > max(makes*cmp.Or(max(a.Make, 0), hedgeGuess), hedgeMakes*hedgeLeast)
}

// stragglerMakes is after how many makes a begun attempt is a straggler: after one, if another node would have the
// batch just in time, or late.
func (a *Attempt) stragglerMakes(other float64) float64 {
	if a.Due < other {
		return 1
	}
	return hedgeMakes
}

const (
	hedgeShare = 0.05 // of wants that may be asked for twice
	hedgeBank  = 10.0 // that may be saved up
	hedgeFirst = 2.0  // before any want
)

// HedgeBudget grants hedges: one for every twenty wants. The zero value is ready.
type HedgeBudget struct{ earned float64 }

// AddWant counts a want.
func (b *HedgeBudget) AddWant() { b.earned = min(b.earned+hedgeShare, hedgeBank-hedgeFirst) }

// TakeHedge grants a hedge, or does not.
func (b *HedgeBudget) TakeHedge() bool {
	if b.earned+hedgeFirst < 1 {
		return false
	}
	b.earned--
	return true
}

const (
	deadlineKnown = 3     // answers, before which a deadline is twice as long
	deadlineGuess = 120.0 // seconds, before there is any
	deadlineLeast = 5.0   // seconds
	deadlineTimes = 20.0  // the usual time
)

// Deadline is after how long an attempt is given up whose want missed so many deadlines before, took being how long
// wants took. It doubles with every two that were missed: a want is at two nodes at once.
func Deadline(took *Median, missed int) float64 {
	d := deadlineGuess
	switch count := took.Count(); {
	case count >= deadlineKnown:
		d = max(deadlineLeast, deadlineTimes*took.Value())
	case count > 0:
		d = min(d, 2*max(deadlineLeast, deadlineTimes*took.Value()))
	}
	return d * math.Exp2(float64(min(missed/2, mostDoublings)))
}

// IsExpired reports whether an attempt is to be given up that was sent age seconds ago and began so many seconds ago,
// negative: it has not. Once it has begun, what was in the node's queue is no excuse: making is how long wants took
// from there. By now more may be known of either than when it was sent.
func IsExpired(age, begun float64, took, making *Median, missed int) bool {
	return age >= deadlineLeast && (age >= Deadline(took, missed) || begun >= Deadline(making, missed))
}
