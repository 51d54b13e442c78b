package server

import (
	"sync"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pulse"
)

// runKey names a training run: what bears the same name and has the same plan, for the same identity.
type runKey struct{ identity, job, plan string }

// account is what a node keeps of a run for as long as it has streams of it.
type account struct {
	key   runKey
	book  *accounts
	share *share.Account

	// Guarded by accounts.mu.
	users int
	cost  control.Average // core-seconds per sample
}

// accounts are those of all runs that have streams here.
type accounts struct {
	weights map[string]float64

	mu  sync.Mutex
	all map[runKey]*account
}

// enter returns the run's account; every enter needs a leave.
func (b *accounts) enter(k runKey) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.all[k]
	if a == nil {
		a = &account{key: k, book: b, share: share.NewAccount(b.weights[k.identity])}
		if b.all == nil {
			b.all = map[runKey]*account{}
		}
		b.all[k] = a
	}
	a.users++
	return a
}

// leave ends one use. What a run did is forgotten with the last.
func (a *account) leave() {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(a.book.all, a.key)
	}
}

// costWeight is that of the newest batch in what a job's samples cost.
const costWeight = 0.05

// made counts a batch.
func (a *account) made(coreSeconds float64, samples int) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	a.cost.Add(coreSeconds/float64(samples), costWeight)
}

// cost is the core-seconds that a sample of a job took of late; 0: unknown. The name is as pulse.Clean leaves it.
func (b *accounts) cost(job, plan string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, a := range b.all {
		if k.plan == plan && pulse.Clean(k.job) == job {
			return float64(a.cost)
		}
	}
	return 0
}
