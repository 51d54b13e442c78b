package server

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/feedwater-io/feedwater/server/batchmem"
)

// account is what one identity does at a node, against what it may. Where nobody has to say who he is, each machine has one.
type account struct {
	rule   Rule
	calls  *rate.Limiter
	wants  *rate.Limiter
	bytes  *rate.Limiter
	budget batchmem.Budget // guarded by memory.mu

	mu       sync.Mutex
	streams  int
	watchers int
	silent   int // calls whose first message has not come
	held     int // wants
	seen     time.Time
}

// Rates that nobody has a reason to pass, for accounts whose rule sets none, per second. Bursts are fine, for all ranks of a large job come
// at once: of calls two seconds' worth, of wants, which cost far less, ten.
const (
	maxCalls = 1000
	maxWants = 10_000
)

func newAccount(r Rule) *account {
	return &account{
		rule:   r,
		calls:  limiter(r.CallsPerSecond, maxCalls, 2),
		wants:  limiter(r.WantsPerSecond, maxWants, 10),
		bytes:  limiter(r.BytesPerSecond, math.MaxFloat64, 1),
		budget: batchmem.Budget{Limit: r.Bytes, Weight: r.weight()},
	}
}

// limiter lets perSecond events pass, or standard, and seconds' worth of them at once.
func limiter(perSecond, standard, seconds float64) *rate.Limiter {
	if perSecond <= 0 {
		perSecond = standard
	}
	if perSecond >= math.MaxInt32 {
		return rate.NewLimiter(rate.Limit(perSecond), math.MaxInt32)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(min(perSecond*seconds, math.MaxInt32))))
}

// enter counts a stream in.
func (a *account) enter() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.rule.Streams; most > 0 && a.streams >= most {
		return &BusyError{Message: fmt.Sprintf("%d streams are open already, as many as this identity may have", most), RetryAfter: time.Second}
	}
	a.streams++
	return nil
}

// leave counts a stream out.
func (a *account) leave() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams--
}

// maxSilent is how many calls of an account may wait for their first message, which comes with the call where nobody means harm.
const maxSilent = 1000

// await counts a call in whose first message has not come; heard counts it out.
func (a *account) await() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent >= maxSilent {
		return &BusyError{Message: fmt.Sprintf("%d calls have not said what they want", a.silent), RetryAfter: time.Second}
	}
	a.silent++
	return nil
}

func (a *account) heard() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent--
}

// watch counts a watcher in; false: there are enough.
func (a *account) watch() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers >= maxAccountWatchers {
		return false
	}
	a.watchers++
	return true
}

// unwatch counts a watcher out.
func (a *account) unwatch() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers--
}

// hold counts a want in.
func (a *account) hold() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.rule.Wants; most > 0 && a.held >= most {
		return &BusyError{Message: fmt.Sprintf("%d wants are held already, as many as this identity may have", most), RetryAfter: retryBusy}
	}
	a.held++
	return nil
}

// release counts a want out.
func (a *account) letGo() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held--
}

// heed waits until one more request may be looked at.
func (a *account) heed(ctx context.Context) error {
	if a == nil || a.wants.Allow() {
		return nil
	}
	return a.wants.Wait(ctx)
}

// afford is how long to wait until bytes may be sent, which may be more than a second's worth.
func (a *account) afford(bytes int) (wait time.Duration) {
	if a == nil {
		return 0
	}
	now := time.Now()
	for most := a.bytes.Burst(); bytes > 0; bytes -= most {
		wait = a.bytes.ReserveN(now, min(bytes, most)).DelayFrom(now)
	}
	return wait
}

// accounts are those of all who called lately.
type accounts struct {
	mu  sync.Mutex
	all map[string]*account
}

const (
	manyAccounts = 4096             // from then on those not in use are forgotten
	restAccount  = 30 * time.Second // after which an unused one would be as new
)

// of is a caller's account.
func (l *accounts) of(c *caller, access *Access) (*account, error) {
	key, rule := "identity "+c.identity, Rule{Roots: []string{anyRoot}}
	if c.identity == "" {
		key = "host " + c.host
	} else {
		var err error
		if rule, err = access.rule(c.identity); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.all[key]
	if a == nil {
		l.sweep()
		a = newAccount(rule)
		l.all[key] = a
	}
	a.touch()
	return a, nil
}

// sweep forgets accounts that nobody uses, if there are many. mu is held.
func (l *accounts) sweep() {
	if len(l.all) < manyAccounts {
		return
	}
	for key, a := range l.all {
		if a.unused() {
			delete(l.all, key)
		}
	}
}

func (a *account) touch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = time.Now()
}

func (a *account) unused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams == 0 && a.watchers == 0 && time.Since(a.seen) > restAccount
}
