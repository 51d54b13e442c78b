// Package share decides whom a node works for next: arithmetic only, without clock or goroutine. The caller guards it, and passes time in
// seconds since whatever it likes.
//
// An account whose earliest want is due within twice the time that one of its batches takes is urgent, and urgent accounts go first: among
// them the one with the least virtual time, which grows by the core-seconds it was served over its weight. So a trainer that is fed asks
// for nothing that hurts others, and one that says all is due at once gains its share and no more. What nobody urgent wants goes to
// whoever's want is due first, and is charged to nobody.
package share

import (
	"cmp"
	"math"

	"github.com/feedwater-io/feedwater/control"
)

// urgentMakes is within how many times a batch's making it is urgent.
const urgentMakes = 2

// costWeight is that of the newest batch in what a job's samples cost.
const costWeight = 0.1

// Account is what shares are counted by: a job. One belongs to one Queue.
type Account struct {
	weight float64
	v      float64 // virtual time: core-seconds of service over weight
	urgent bool
	makes  control.Longest
	cost   control.Average // core-seconds per sample
}

// NewAccount returns the account of a job with a weight; what is not a positive number counts as 1.
func NewAccount(weight float64) *Account {
	if !(weight > 0) || math.IsInf(weight, 0) {
		weight = 1
	}
	return &Account{weight: weight}
}

// ledger is the virtual time of a node.
type ledger struct {
	v    float64
	cost control.Average // core-seconds per sample, of all accounts
}

// made takes what a batch of so many samples took: seconds from the first sample's beginning to the end, and core-seconds.
func (l *ledger) made(a *Account, seconds, coreSeconds float64, samples int) {
	a.makes.Add(seconds)
	perSample := coreSeconds / float64(max(samples, 1))
	a.cost.Add(perSample, costWeight)
	l.cost.Add(perSample, costWeight)
}

// rouse notes whether an account whose earliest want is due in so many seconds is urgent. One that becomes urgent brings no credit from the
// time in which it was not.
func (l *ledger) rouse(a *Account, due float64) {
	urgent := due <= urgentMakes*a.makes.Value()
	if urgent && !a.urgent {
		a.v = max(a.v, l.v)
	}
	a.urgent = urgent
}

// serve charges an urgent account for one sample.
func (l *ledger) serve(a *Account) {
	if !a.urgent {
		return
	}
	l.v = max(l.v, a.v)
	a.v += cmp.Or(l.price(a), unknownPrice) / a.weight
}

// unknownPrice is what a sample is charged before any batch was made, in core-seconds: for nothing, whoever came first would have all until then.
const unknownPrice = 0.01

// price is the core-seconds that a sample of an account costs, or one of all accounts while that is unknown; 0: nothing is known yet.
func (l *ledger) price(a *Account) float64 {
	if a.cost == 0 {
		return float64(l.cost)
	}
	return float64(a.cost)
}
