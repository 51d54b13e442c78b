package client

import "time"

// suspendedFor is how long the fleet's goroutine has not run, beyond a tick, before that is taken for a time in which this process was stopped: by
// a signal, a freezer, a debugger, a machine that slept. Nobody could take a batch then, so it counts for no timeout and against no node.
const suspendedFor = 500 * time.Millisecond

// beat notes that the fleet's goroutine runs, which it does every tickEvery, and moves the fleet's times on by as long as this process was
// stopped before. It comes before anything else that looks at the time.
func (f *Fleet) beat(now time.Time) {
	gap := now.Sub(f.beaten) - tickEvery
	if !f.beaten.IsZero() && gap > suspendedFor {
		f.job.log.Info("this process was stopped for a while, which counts for no timeout", "for", gap.Round(time.Second/10))
		f.resume(gap, now)
	}
	f.beaten = now
}

// resume moves the times that waits are counted from on, by a time in which this process was stopped. What nodes do by their own clocks stays, and
// so does what is compared with when a node was heard.
func (f *Fleet) resume(gap time.Duration, now time.Time) {
	f.inFlight.resumed = now
	for _, t := range []*time.Time{&f.inFlight.progress, &f.job.epoch, &f.inFlight.granted, &f.reminder, &f.opening.settleBy} {
		later(t, gap)
	}
	for _, m := range f.roster.members {
		later(&m.surplus, gap)
		if m.session != nil {
			later(&m.session.answered, gap)
		}
	}
	for w := range f.queue.all {
		later(&w.Due, gap)
		later(&w.failedBy, gap)
		for _, a := range w.out {
			later(&a.sent, gap)
			later(&a.begun, gap)
			a.suspended = true
		}
	}
}

func later(t *time.Time, by time.Duration) {
	if !t.IsZero() {
		*t = t.Add(by)
	}
}
