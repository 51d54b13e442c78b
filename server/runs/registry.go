// Package runs keeps the training runs that have streams at a node: whose they are, what their samples cost, and which
// account of the node's cores serves each. Runs of one identity share the weight of that. A run of which the last
// stream has ended is forgotten; what its identity was served is remembered for a while.
//
// It starts no goroutine.
package runs

import (
	"slices"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Key names a training run: what bears the same name and has the same plan, for the same identity.
type Key struct{ Identity, Job, Plan string }

// Run is what a node keeps of a run for as long as it has streams of it.
type Run struct {
	key      Key
	registry *Registry
	// Account is what its wants are served by.
	Account *share.Account
	// Whether others have that account, too: their steps have nothing to do with this one's.
	isOverflow bool

	// Guarded by Registry.mu.
	users    int
	trainers []*Trainer // but for those that were replaced
	cost     control.SampleCost
	lately   control.SampleCost // of fewer batches
}

// Trainer is one of a run's, for as long as it has a stream here.
type Trainer struct {
	// About is what it said of itself; nil: nothing.
	About *pb.Trainer
	// IsSilent, if set, reports whether nothing has come from it for so long that it may be gone. It must not block.
	IsSilent func() bool
	// End ends its stream; it is set where IsSilent is. It must not block.
	End func()
}

// Registry are the runs that have streams here.
type Registry struct {
	// Weight is an identity's share of the cores; it is set before the first use.
	Weight func(identity string) float64

	mu      sync.Mutex
	byKey   map[Key]*Run
	tenants map[string]*tenant // by identity; what they were served is kept for a while, see forgetIdle
	sweepAt int                // tenants from which on those without runs are looked at
}

// tenant is an identity: its runs together have the share of its weight.
type tenant struct {
	*share.Tenant
	runs     int
	leftAt   time.Time      // when the last run ended
	overflow *share.Account // of its runs beyond maxRuns, made if there are any
}

const (
	// manyTenants is how many are remembered whether they have runs or not.
	manyTenants = 256
	// debtAge is for how long what a tenant without runs was served is remembered. Who leaves and comes again at once
	// has the share that he would have had.
	debtAge = 10 * time.Minute
	// mostIdle is how many tenants without runs are remembered at most.
	mostIdle = 4096
)

// maxRuns is how many runs of an identity have accounts of their own: each one that waits is looked at for each sample.
const maxRuns = 64

// EnterRun returns the run; every EnterRun needs a Leave.
func (b *Registry) EnterRun(k Key) *Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeRun(k)
}

// takeRun is EnterRun with mu held.
func (b *Registry) takeRun(k Key) *Run {
	a := b.byKey[k]
	if a == nil {
		a = &Run{key: k, registry: b}
		a.Account, a.isOverflow = b.newAccount(k.Identity)
		if b.byKey == nil {
			b.byKey = map[Key]*Run{}
		}
		b.byKey[k] = a
	}
	a.users++
	return a
}

// newAccount is a new run's, and whether it is others', too. Where nobody has to say who he is each run counts by
// itself. mu is held.
func (b *Registry) newAccount(identity string) (a *share.Account, isOverflow bool) {
	if identity == "" {
		return share.NewAccount(b.Weight(identity)), false
	}
	p := b.tenants[identity]
	if p == nil {
		b.forgetIdle(time.Now())
		p = &tenant{Tenant: share.NewTenant(b.Weight(identity))}
		if b.tenants == nil {
			b.tenants = map[string]*tenant{}
		}
		b.tenants[identity] = p
	}
	if p.runs++; p.runs <= maxRuns {
		return p.Account(), false
	}
	if p.overflow == nil {
		p.overflow = p.Account()
	}
	return p.overflow, true
}

// forgetIdle forgets tenants that have had no run for a while, if there are many, and those that left first if they are
// very many. mu is held.
func (b *Registry) forgetIdle(now time.Time) {
	if b.sweepAt = max(b.sweepAt, manyTenants); len(b.tenants) < b.sweepAt {
		return
	}
	var idle []string
	for identity, p := range b.tenants {
		switch {
		case p.runs > 0:
		case now.Sub(p.leftAt) > debtAge:
			delete(b.tenants, identity)
		default:
			idle = append(idle, identity)
		}
	}
	if len(idle) > mostIdle {
		slices.SortFunc(idle, func(a, c string) int { return b.tenants[a].leftAt.Compare(b.tenants[c].leftAt) })
		for _, identity := range idle[:len(idle)-mostIdle] {
			delete(b.tenants, identity)
		}
	}
	b.sweepAt = max(manyTenants, 2*len(b.tenants))
}

// StepOf is what a want's step is among those of the account.
func (a *Run) StepOf(step uint64) uint64 {
	if a.isOverflow {
		return 0
	}
	return step
}

// Leave ends one use. What a run did is forgotten with the last.
func (a *Run) Leave() {
	a.registry.mu.Lock()
	defer a.registry.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(a.registry.byKey, a.key)
		if p := a.registry.tenants[a.key.Identity]; p != nil {
			if p.runs--; p.runs == 0 {
				p.leftAt = time.Now()
			}
		}
	}
}

// Weights of the newest batch in what a job's samples cost: for how many nodes a job needs, and for what a node tells
// trainers, who have to know soon that it has become slow.
const (
	costWeight   = 0.05
	latelyWeight = 0.3
)

// AddBatch counts a batch.
func (a *Run) AddBatch(coreSeconds float64, samples int) {
	a.registry.mu.Lock()
	defer a.registry.mu.Unlock()
	a.cost.AddBatch(coreSeconds, samples, costWeight)
	a.lately.AddBatch(coreSeconds, samples, latelyWeight)
}

// RecentCost is the core-seconds that a sample took of late; 0: unknown.
func (a *Run) RecentCost() float64 {
	a.registry.mu.Lock()
	defer a.registry.mu.Unlock()
	return float64(a.lately)
}

// CostOf is the core-seconds that a sample of a job took of late; 0: unknown. The name is as pulse.CleanName leaves it.
func (b *Registry) CostOf(job, plan string) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, a := range b.byKey {
		if k.Plan == plan && pulse.CleanName(k.Job) == job {
			return float64(a.cost)
		}
	}
	return 0
}
