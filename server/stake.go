package server

import (
	"sync"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/pulse"
	"github.com/feedwater-io/feedwater/control/share"
)

// runKey names a training run: what bears the same name and has the same plan, for the same identity.
type runKey struct{ identity, job, plan string }

// stake is what a node keeps of a run for as long as it has streams of it.
type stake struct {
	key   runKey
	book  *stakes
	share *share.Account

	// Guarded by stakes.mu.
	users  int
	cost   control.Average // core-seconds per sample
	lately control.Average // the same, of fewer batches
}

// stakes are those of all runs that have streams here.
type stakes struct {
	weight func(identity string) float64

	mu  sync.Mutex
	all map[runKey]*stake
}

// enter returns the run's stake; every enter needs a leave.
func (b *stakes) enter(k runKey) *stake {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.all[k]
	if a == nil {
		a = &stake{key: k, book: b, share: share.NewAccount(b.weight(k.identity))}
		if b.all == nil {
			b.all = map[runKey]*stake{}
		}
		b.all[k] = a
	}
	a.users++
	return a
}

// leave ends one use. What a run did is forgotten with the last.
func (a *stake) leave() {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(a.book.all, a.key)
	}
}

// Weights of the newest batch in what a job's samples cost: for how many nodes a job needs, and for what a node tells trainers, who have
// to know soon that it has become slow.
const (
	costWeight   = 0.05
	latelyWeight = 0.3
)

// made counts a batch.
func (a *stake) made(coreSeconds float64, samples int) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	a.cost.Add(coreSeconds/float64(samples), costWeight)
	a.lately.Add(coreSeconds/float64(samples), latelyWeight)
}

// spent is the core-seconds that a sample took of late; 0: unknown.
func (a *stake) spent() float64 {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	return float64(a.lately)
}

// cost is the core-seconds that a sample of a job took of late; 0: unknown. The name is as pulse.Clean leaves it.
func (b *stakes) cost(job, plan string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, a := range b.all {
		if k.plan == plan && pulse.Clean(k.job) == job {
			return float64(a.cost)
		}
	}
	return 0
}
