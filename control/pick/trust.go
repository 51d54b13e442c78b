package pick

const (
	doubtAfter  = 2    // failures in a row
	doubtFirst  = 1.0  // seconds to the first probe; each further one waits for twice as long
	doubtMost   = 30.0 // seconds
	doubtDamage = 60.0 // seconds after damage, until a batch ends the doubt or a probe is sent
	wrongWeight = 0.25 // of the newest batch in the share of wrong ones
	wrongMost   = 0.5  // of batches, from which on a node is of no help
)

// Trust is what a node's behaviour earned it. A node that is doubted gets wants that nobody else takes, and a probe now
// and then, until a batch comes from it. The zero value trusts.
type Trust struct {
	failures     int     // in a row
	wrong        float64 // share of batches that were not what they had to be, of late
	restored     float64 // when a batch ends the doubt again
	delay, probe float64
}

// RecordFailure counts a failure that was the node's own: an error or a deadline missed. To be slow is none.
func (t *Trust) RecordFailure(now float64) {
	if t.failures++; t.failures >= doubtAfter && t.delay == 0 {
		t.setDoubt(doubtFirst, now)
	}
}

// RecordDamage counts a batch that was not what it had to be.
func (t *Trust) RecordDamage(now float64) {
	t.wrong += wrongWeight * (1 - t.wrong)
	t.restored = now + doubtDamage
	t.setDoubt(doubtDamage, now)
}

func (t *Trust) setDoubt(delay, now float64) { t.delay, t.probe = delay, now+delay }

// RecordDelivery counts a batch that was used.
func (t *Trust) RecordDelivery(now float64) {
	t.failures, t.wrong = 0, t.wrong*(1-wrongWeight)
	if now >= t.restored {
		t.delay, t.probe = 0, 0
	}
}

// IsDoubted reports whether others go first.
func (t *Trust) IsDoubted() bool { return t.delay > 0 }

// MayHelp reports whether a node that is doubted may have what would come too late from others: it answers, and most
// batches of late were what they had to be.
func (t *Trust) MayHelp() bool {
	return t.IsDoubted() && t.failures < doubtAfter && t.wrong < wrongMost
}

// TakeProbe reports whether it is time to give a node that is doubted one want; then the next one is later.
func (t *Trust) TakeProbe(now float64) bool {
	if !t.IsDoubted() || now < t.probe {
		return false
	}
	t.delay = max(min(2*t.delay, doubtMost), t.delay)
	t.probe = now + t.delay
	return true
}
