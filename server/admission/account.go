package admission

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/feedwater-io/feedwater/server/batchmem"
)

// Account is what one identity does at a node, against what it may. Where nobody has to say who he is, each machine has
// one.
type Account struct {
	rule   Rule
	calls  *rate.Limiter
	wants  *rate.Limiter
	bytes  *rate.Limiter
	budget batchmem.Budget // guarded by memory.mu

	mu          sync.Mutex
	streams     int
	watchers    int
	silentCalls int // calls whose first message has not come
	heldWants   int // wants
	usedAt      time.Time
}

// Rates that nobody has a reason to pass, for accounts whose rule sets none, per second. Bursts are fine, for all ranks
// of a large job come at once: of calls two seconds' worth, of wants, which cost far less, ten.
const (
	maxCalls = 1000
	maxWants = 10_000
)

func newAccount(r Rule) *Account {
	return &Account{
		rule:   r,
		calls:  newLimiter(r.CallsPerSecond, maxCalls, 2),
		wants:  newLimiter(r.WantsPerSecond, maxWants, 10),
		bytes:  newLimiter(r.BytesPerSecond, math.MaxFloat64, 1),
		budget: batchmem.Budget{Limit: r.Bytes, Weight: r.weightOr1()},
	}
}

// newLimiter lets perSecond events pass, or standard, and seconds' worth of them at once.
func newLimiter(perSecond, standard, seconds float64) *rate.Limiter {
	if perSecond <= 0 {
		perSecond = standard
	}
	if perSecond >= math.MaxInt32 {
		return rate.NewLimiter(rate.Limit(perSecond), math.MaxInt32)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(min(perSecond*seconds, math.MaxInt32))))
}

// AddStream counts a stream in.
func (a *Account) AddStream() error {
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

// RemoveStream counts a stream out.
func (a *Account) RemoveStream() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams--
}

// maxSilent is how many calls of an account may wait for their first message, which comes with the call where nobody
// means harm.
const maxSilent = 1000

// addSilentCall counts a call in whose first message has not come; heard counts it out.
func (a *Account) addSilentCall() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silentCalls >= maxSilent {
		return &BusyError{Message: fmt.Sprintf("%d calls have not said what they want", a.silentCalls), RetryAfter: time.Second}
	}
	a.silentCalls++
	return nil
}

func (a *Account) removeSilentCall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silentCalls--
}

// MaxAccountWatchers bounds how many Watch calls of one account are answered at once.
const MaxAccountWatchers = 16

// AddWatcher counts a watcher in; false: there are enough.
func (a *Account) AddWatcher() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers >= MaxAccountWatchers {
		return false
	}
	a.watchers++
	return true
}

// RemoveWatcher counts a watcher out.
func (a *Account) RemoveWatcher() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers--
}

// AddWant counts a want in.
func (a *Account) AddWant() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.rule.Wants; most > 0 && a.heldWants >= most {
		return &BusyError{Message: fmt.Sprintf("%d wants are held already, as many as this identity may have", most), RetryAfter: RetryBusy}
	}
	a.heldWants++
	return nil
}

// RemoveWant counts a want out.
func (a *Account) RemoveWant() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heldWants--
}

// ThrottleRequest waits until one more request may be looked at.
func (a *Account) ThrottleRequest(ctx context.Context) error {
	if a == nil || a.wants.Allow() {
		return nil
	}
	return a.wants.Wait(ctx)
}

// ReserveBytes is how long to wait until bytes may be sent, which may be more than a second's worth.
func (a *Account) ReserveBytes(bytes int) (wait time.Duration) {
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
	mu    sync.Mutex
	byKey map[string]*Account
}

const (
	manyAccounts = 4096             // from then on those not in use are forgotten
	accountRest  = 30 * time.Second // after which an unused one would be as new
)

// accountOf is the account of an identity, or of a host where nobody has to say who he is.
func (l *accounts) accountOf(identity, host string, access *Access) (*Account, error) {
	key, rule := "identity "+identity, Rule{Roots: []string{anyRoot}}
	if identity == "" {
		key = "host " + host
	} else {
		var err error
		if rule, err = access.ruleOf(identity); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byKey[key]
	if a == nil {
		l.forgetUnused()
		a = newAccount(rule)
		l.byKey[key] = a
	}
	a.noteUse()
	return a, nil
}

// forgetUnused forgets accounts that nobody uses, if there are many. mu is held.
func (l *accounts) forgetUnused() {
	if len(l.byKey) < manyAccounts {
		return
	}
	for key, a := range l.byKey {
		if a.isUnused() {
			delete(l.byKey, key)
		}
	}
}

func (a *Account) noteUse() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.usedAt = time.Now()
}

func (a *Account) isUnused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams == 0 && a.watchers == 0 && time.Since(a.usedAt) > accountRest
}
