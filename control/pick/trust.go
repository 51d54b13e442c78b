package pick

const (
	doubtAfter  = 2    // failures in a row
	doubtFirst  = 1.0  // seconds to the first probe; each further one waits for twice as long
	doubtMost   = 30.0 // seconds
	doubtDamage = 60.0 // seconds to the first probe after damage
)

// Trust is what a node's behaviour earned it. A node that is doubted gets wants that nobody else takes, and a probe now and then, until a
// batch comes from it. The zero value trusts.
type Trust struct {
	failures     int // in a row
	delay, probe float64
}

// Failed counts a failure that was the node's own: an error, a deadline missed, an attempt that a later one overtook.
func (t *Trust) Failed(now float64) {
	if t.failures++; t.failures >= doubtAfter && t.delay == 0 {
		t.doubt(doubtFirst, now)
	}
}

// Damaged counts a batch that was not what it had to be.
func (t *Trust) Damaged(now float64) { t.doubt(doubtDamage, now) }

func (t *Trust) doubt(delay, now float64) { t.delay, t.probe = delay, now+delay }

// Delivered counts a batch that was used.
func (t *Trust) Delivered() { *t = Trust{} }

// Doubted reports whether others go first.
func (t *Trust) Doubted() bool { return t.delay > 0 }

// Probe reports whether it is time to give a node that is doubted one want; then the next one is later.
func (t *Trust) Probe(now float64) bool {
	if !t.Doubted() || now < t.probe {
		return false
	}
	t.delay = max(min(2*t.delay, doubtMost), t.delay)
	t.probe = now + t.delay
	return true
}
