// Package share decides whom a node works for next: arithmetic only, without clock or goroutine. The caller guards it,
// and passes time in seconds since whatever it likes.
//
// An account's wants are served by the steps that they are for: the ranks of a job step together, so whichever is
// behind goes first. An account whose earliest want is due within twice the time that one of its batches takes is
// urgent, and urgent accounts go first: among them that of the tenant with the least virtual time, which grows by the
// cost of what it was served over its weight. So a trainer that is fed asks for nothing that hurts others, and one that
// says all is due at once gains its share and no more. What nobody urgent wants goes to whoever's want is due first,
// and is charged to nobody.
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

// Tenant is whoever accounts belong to: one has the share of its weight, however many accounts it spreads its wants
// over. It belongs to one Queue.
type Tenant struct {
	weight         float64
	v              float64 // virtual time: cost of service over weight, in the ledger's unit
	served         float64 // the most virtual time of an account at which it was served
	urgent         int     // accounts
	activeAccounts int     // accounts with entries
}

// NewTenant returns one with a weight; what is not a positive number counts as 1.
func NewTenant(weight float64) *Tenant {
	if !(weight > 0) || math.IsInf(weight, 0) {
		weight = 1
	}
	return &Tenant{weight: weight}
}

// Account is what shares are counted by: a job. Accounts of a tenant have equal shares of its own.
type Account struct {
	tenant *Tenant
	v      float64 // virtual time among its tenant's: cost of service
	urgent bool
	makes  control.Longest
	cost   control.SampleCost
}

// Account returns one of the tenant.
func (p *Tenant) Account() *Account { return &Account{tenant: p} }

// NewAccount returns the only account of a tenant with a weight.
func NewAccount(weight float64) *Account { return NewTenant(weight).Account() }

// weightShare is the weight of an account that has entries.
func (a *Account) weightShare() float64 {
	return a.tenant.weight / float64(max(a.tenant.activeAccounts, 1))
}

// ledger is the virtual time of a node. Its unit is what a sample of the first batch cost, so that samples which are
// handed out before can be counted too: for nothing, whoever came first would have all until then.
type ledger struct {
	v    float64
	unit float64            // core-seconds; 0: no batch was made
	cost control.SampleCost // of all accounts
}

// recordCost takes what a batch of so many samples took: seconds from the first sample's beginning to the end, and
// core-seconds.
func (l *ledger) recordCost(a *Account, seconds, coreSeconds float64, samples int) {
	a.makes.Add(seconds)
	a.cost.AddBatch(coreSeconds, max(samples, 1), costWeight)
	l.cost.AddBatch(coreSeconds, max(samples, 1), costWeight)
	l.unit = cmp.Or(l.unit, float64(l.cost))
}

// updateUrgency notes whether an account whose earliest want is due in so many seconds is urgent. Who becomes urgent
// brings no credit from the time in which he was not.
func (l *ledger) updateUrgency(a *Account, due float64) {
	urgent, p := due <= urgentMakes*a.makes.Value(), a.tenant
	if urgent && !a.urgent {
		if p.urgent == 0 {
			p.v = max(p.v, l.v)
		}
		p.urgent++
		a.urgent, a.v = true, max(a.v, p.served)
	}
	if !urgent {
		a.endUrgency()
	}
}

// endUrgency notes that an account is not urgent.
func (a *Account) endUrgency() {
	if a.urgent {
		a.urgent = false
		a.tenant.urgent--
	}
}

// chargeSample charges an urgent account, and its tenant, for one sample.
func (l *ledger) chargeSample(a *Account) {
	if !a.urgent {
		return
	}
	p, price := a.tenant, 1.0
	if l.unit > 0 {
		price = l.sampleCost(a) / l.unit
	}
	l.v, p.served = max(l.v, p.v), max(p.served, a.v)
	p.v += price / p.weight
	a.v += price
}

// sampleCost is the core-seconds that a sample of an account costs, or one of all accounts while that is unknown; 0:
// nothing is known yet.
func (l *ledger) sampleCost(a *Account) float64 {
	if a.cost == 0 {
		return float64(l.cost)
	}
	return float64(a.cost)
}
