package server

import (
	"slices"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// runKey names a training run: what bears the same name and has the same plan, for the same identity.
type runKey struct{ identity, job, plan string }

// stake is what a node keeps of a run for as long as it has streams of it.
type stake struct {
	key   runKey
	book  *stakes
	share *share.Account
	// Whether others have that account, too: their steps have nothing to do with this one's.
	crowded bool

	// Guarded by stakes.mu.
	users   int
	trainer *pb.Trainer     // what the first of its trainers said of itself; nil: nothing
	cost    control.Average // core-seconds per sample
	lately  control.Average // the same, of fewer batches
}

// stakes are those of all runs that have streams here.
type stakes struct {
	weight func(identity string) float64

	mu      sync.Mutex
	all     map[runKey]*stake
	parties map[string]*party // by identity; what they were served is kept for a while, see sweep
	many    int               // parties from which on those without runs are looked at
}

// party is an identity: its runs together have the share of its weight.
type party struct {
	*share.Party
	runs  int
	left  time.Time      // when the last run ended
	crowd *share.Account // of its runs beyond maxRuns, made if there are any
}

const (
	// manyParties is how many are remembered whether they have runs or not.
	manyParties = 256
	// debtAge is for how long what a party without runs was served is remembered. Who leaves and comes again at once has the share that he
	// would have had.
	debtAge = 10 * time.Minute
	// mostIdle is how many parties without runs are remembered at most.
	mostIdle = 4096
)

// maxRuns is how many runs of an identity have accounts of their own: each one that waits is looked at for each sample.
const maxRuns = 64

// enter returns the run's stake; every enter needs a leave.
func (b *stakes) enter(k runKey) *stake {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(k)
}

// take is enter with mu held.
func (b *stakes) take(k runKey) *stake {
	a := b.all[k]
	if a == nil {
		a = &stake{key: k, book: b}
		a.share, a.crowded = b.account(k.identity)
		if b.all == nil {
			b.all = map[runKey]*stake{}
		}
		b.all[k] = a
	}
	a.users++
	return a
}

// account is a new run's, and whether it is others', too. Where nobody has to say who he is each run counts by itself. mu is held.
func (b *stakes) account(identity string) (a *share.Account, crowded bool) {
	if identity == "" {
		return share.NewAccount(b.weight(identity)), false
	}
	p := b.parties[identity]
	if p == nil {
		b.sweep(time.Now())
		p = &party{Party: share.NewParty(b.weight(identity))}
		if b.parties == nil {
			b.parties = map[string]*party{}
		}
		b.parties[identity] = p
	}
	if p.runs++; p.runs <= maxRuns {
		return p.Account(), false
	}
	if p.crowd == nil {
		p.crowd = p.Account()
	}
	return p.crowd, true
}

// sweep forgets parties that have had no run for a while, if there are many, and those that left first if they are very many. mu is held.
func (b *stakes) sweep(now time.Time) {
	if b.many = max(b.many, manyParties); len(b.parties) < b.many {
		return
	}
	var idle []string
	for identity, p := range b.parties {
		switch {
		case p.runs > 0:
		case now.Sub(p.left) > debtAge:
			delete(b.parties, identity)
		default:
			idle = append(idle, identity)
		}
	}
	if len(idle) > mostIdle {
		slices.SortFunc(idle, func(a, c string) int { return b.parties[a].left.Compare(b.parties[c].left) })
		for _, identity := range idle[:len(idle)-mostIdle] {
			delete(b.parties, identity)
		}
	}
	b.many = max(manyParties, 2*len(b.parties))
}

// step is what a want's step is among those of the account.
func (a *stake) step(w *Want) uint64 {
	if a.crowded {
		return 0
	}
	return w.Step
}

// leave ends one use. What a run did is forgotten with the last.
func (a *stake) leave() {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(a.book.all, a.key)
		if p := a.book.parties[a.key.identity]; p != nil {
			if p.runs--; p.runs == 0 {
				p.left = time.Now()
			}
		}
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
