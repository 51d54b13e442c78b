package client

import "time"

// unknownPace is assumed of nodes while nothing is known of any, in seconds per sample.
const unknownPace = 0.004

// assign gives wants from the queue to nodes, the earliest due first, each to the node that will have it soonest, counting what
// that node has in hand and what was planned for it before. A want whose node is full waits: so slow nodes get wants that are due
// late, and none that a faster one makes earlier.
func (f *Fleet) assign(now time.Time) {
	f.probe(now)
	f.checkRefused()
	if len(f.queue) == 0 || !f.hasRoom(now) {
		return
	}
	assumed := f.usualPace()
	for _, m := range f.members {
		m.forecast = 0
	}
	sortByDue(f.queue)
	waiting := f.queue[:0]
	for _, w := range f.queue {
		m := f.pick(w, assumed, now)
		switch {
		case m != nil && m.takes(w.count):
			f.send(w, m.session, now)
			continue
		case m != nil:
			m.forecast += w.count
		default:
			if err := w.hopeless(f.members, now); err != nil {
				f.finish(w, Result{Err: err})
				continue
			}
		}
		waiting = append(waiting, w)
	}
	clear(f.queue[len(waiting):])
	f.queue = waiting
}

// pick is the node that will have a want soonest; nil if none may be asked now.
func (f *Fleet) pick(w *Want, assumed float64, now time.Time) *member {
	var best *member
	var bestTier int
	var bestFinish float64
	for _, m := range f.members {
		t := w.tries[m]
		if !m.usable() || now.Before(m.busyUntil) || t.failures >= maxTries || now.Before(t.again) {
			continue
		}
		tier := t.failures
		if now.Before(m.lastUntil) {
			tier += maxTries
		}
		finish := m.finish(w.count, assumed)
		if best == nil || tier < bestTier || tier == bestTier && finish < bestFinish {
			best, bestTier, bestFinish = m, tier, finish
		}
	}
	return best
}

// finish is how long a node will take until it has made count more samples, in seconds.
func (m *member) finish(count int, assumed float64) float64 {
	pace := m.pace
	if pace == 0 {
		pace = assumed
	}
	return float64(m.session.samples+m.forecast+count) * pace
}

// usualPace is the mean of the known paces.
func (f *Fleet) usualPace() float64 {
	sum, n := 0.0, 0
	for _, m := range f.members {
		if m.pace > 0 {
			sum, n = sum+m.pace, n+1
		}
	}
	if n == 0 {
		return unknownPace
	}
	return sum / float64(n)
}

// takes reports whether a node may get one more want of count samples.
func (m *member) takes(count int) bool {
	return len(m.session.wants) < inFlight(m.session.workers, count)
}

// inFlight is how many wants of count samples keep a node busy: max(3, ⌈2 × cores ÷ batch⌉). More would only pile work up where
// nobody else can take it.
func inFlight(workers, count int) int {
	count = max(count, 1)
	return max(3, (2*workers+count-1)/count)
}

func (f *Fleet) hasRoom(now time.Time) bool {
	for _, m := range f.members {
		if m.usable() && !now.Before(m.busyUntil) && m.takes(f.queue[0].count) {
			return true
		}
	}
	return false
}
