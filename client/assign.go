package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// unknownCost is assumed of samples while nothing is known of any, in core-seconds.
const unknownCost = 0.008

// assign gives wants from the queue to nodes, the earliest due first, each to the node that will have it soonest, counting what
// that node has in hand and what was planned for it before. A want whose node is full waits if that is worth it: so nodes that are much slower
// get wants that are due late, and none that a faster one makes much earlier.
func (f *Fleet) assign(now time.Time) {
	f.probe(now)
	f.checkRefused()
	f.rescue(now)
	if len(f.queue) == 0 || !f.hasRoom(f.queue[0].count, now) {
		return
	}
	f.measure()
	f.weigh(now)
	sortByDue(f.queue)
	waiting := f.queue[:0]
assigning:
	for i, w := range f.queue {
		m := f.pick(w, now)
		switch {
		case m != nil && m.takes(w.count):
			f.send(w, m.session, now)
			if !f.hasRoom(w.count, now) { // most often: the node that has made one batch gets one want
				waiting = append(waiting, f.queue[i+1:]...)
				break assigning
			}
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

// weigh looks at what the nodes have in hand, for pick.
func (f *Fleet) weigh(now time.Time) {
	for _, m := range f.live {
		m.forecast, m.load = 0, f.load(m, 0, now)
	}
}

// pick is the node that will have a want soonest and does not have it yet, by what weigh saw and was sent since, but one that has room for it if
// it has it nearly as soon. Nil: none may be asked now.
func (f *Fleet) pick(w *Want, now time.Time) *member {
	var best, roomy, helper candidate
	for _, m := range f.live {
		if !w.mayGo(m, now) {
			continue
		}
		c := candidate{m, w.tier(m), f.forecast(m, w)}
		if c.tier == 0 && m.trust.Helps() && m.takes(w.count) && c.before(helper, w) {
			helper = c
		}
		if m.trust.Doubted() {
			c.tier += maxTries + 1
		}
		if m.shuns(w) {
			c.tier++
		}
		if c.before(best, w) {
			best = c
		}
		if m.takes(w.count) && c.before(roomy, w) {
			roomy = c
		}
	}
	due := w.dueIn(now)
	if roomy.member != nil && roomy.tier == best.tier && !pick.WorthWaiting(best.finish, roomy.finish, due) {
		return roomy.member // the best itself, if it has room
	}
	if helper.member != nil && due < best.finish {
		return helper.member
	}
	return best.member
}

// rescue gives wants that were taken from a node to others, full ones too.
func (f *Fleet) rescue(now time.Time) {
	if !slices.ContainsFunc(f.queue, (*Want).taken) {
		return
	}
	sortByDue(f.queue)
	f.queue = slices.DeleteFunc(f.queue, func(w *Want) bool {
		if !w.taken() {
			return false
		}
		other := f.rescuer(w, false, now)
		return other.member != nil && f.send(w, other.session, now)
	})
}

// taken reports whether the want was taken from the node that had it, and none has it since.
func (w *Want) taken() bool {
	return w.left != nil && w.final == nil && (len(w.out) == 0 || len(w.out) == 1 && w.out[0].cancelled)
}

// rescuer is the node, not a doubted one, that would have a want soonest which is needed next and is at another node, or was. It makes it before
// what is needed later. Nodes are full most of the time, for what they made is replaced at once: for one that its node has begun with, of which
// there are few, or that would be in time there, a node may get one want more than it takes. There may be none.
func (f *Fleet) rescuer(w *Want, begun bool, now time.Time) (best candidate) {
	due := w.dueIn(now)
	for _, m := range f.live {
		if !w.mayGo(m, now) || m.trust.Doubted() || m.shuns(w) {
			continue
		}
		c := candidate{m, w.tier(m), m.speed.Finish(f.loadBefore(m, w, now))}
		room := m.room(w.count)
		if (room > 0 || room == 0 && (begun || c.finish < due)) && c.before(best, w) {
			best = c
		}
	}
	return best
}

// mayGo reports whether a node may be asked for a want now that does not have it yet.
func (w *Want) mayGo(m *member, now time.Time) bool {
	t := w.tries[m]
	return m.usable() && !now.Before(m.busyUntil) && t.failures < maxTries && !now.Before(t.again) && !w.isAt(m)
}

// tier is how often a want came back from a node.
func (w *Want) tier(m *member) int {
	if w.left == m {
		return w.tries[m].failures + 1
	}
	return w.tries[m].failures
}

// candidate is a node for a want: a lower tier goes first, and in it who has it done in fewer seconds.
type candidate struct {
	*member
	tier   int
	finish float64
}

// before reports whether a goes first. There need not be a b.
func (a candidate) before(b candidate, w *Want) bool {
	if b.member == nil {
		return true
	}
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.finish, b.finish), cmp.Compare(pick.Tie(b.score, w.seq), pick.Tie(a.score, w.seq))) < 0
}

// forecast is in how many seconds a node would have made a want, besides what was planned for it before.
func (f *Fleet) forecast(m *member, w *Want) float64 {
	load := m.load
	load.Held, load.Unheard, load.Count = load.Held+m.forecast, load.Unheard+m.forecast, w.count
	return m.speed.Finish(load)
}

// elsewhere reports whether another node than m could take a want.
func (f *Fleet) elsewhere(w *Want, m *member, now time.Time) bool {
	for _, other := range f.live {
		if other != m && other.usable() && !now.Before(other.busyUntil) && w.tries[other].failures < maxTries {
			return true
		}
	}
	return false
}

// load is what a node has in hand, with count samples more.
func (f *Fleet) load(m *member, count int, now time.Time) pick.Load {
	s := m.session
	return pick.Load{
		Held: s.samples, Unheard: s.unheard(), Waited: s.waited(now), Count: count,
		Usual: f.cost / float64(max(s.workers, 1)), Now: f.clock(now),
	}
}

// loadBefore is what a node makes before a want, and it: what is needed later goes behind, unless the node has begun with it.
func (f *Fleet) loadBefore(m *member, w *Want, now time.Time) pick.Load {
	load := f.load(m, w.count, now)
	for _, a := range m.session.wants {
		if !a.begun.IsZero() || w.compare(a.want) >= 0 {
			continue
		}
		load.Held -= a.want.count
		if a.attempt.id > m.session.heard {
			load.Unheard -= a.want.count
		} else {
			load.Passed += a.want.count
		}
	}
	return load
}

// waited is for how long nothing has come, in seconds per sample of the want that the node has had for longest.
func (s *session) waited(now time.Time) float64 {
	if len(s.wants) == 0 {
		return 0
	}
	return s.wants[0].waited(now).Seconds() / float64(max(s.wants[0].want.count, 1))
}

// waited is for how long the node could have worked on an attempt alone.
func (a *asked) waited(now time.Time) time.Duration {
	if a.session.answered.After(a.sent) {
		return now.Sub(a.session.answered) // it made another one until then
	}
	return now.Sub(a.sent)
}

// unheard is the samples of wants that the node had not heard of when it spoke last.
func (s *session) unheard() int {
	n := 0
	for _, a := range s.wants {
		if a.attempt.id > s.heard {
			n += a.want.count
		}
	}
	return n
}

// measure takes what a sample costs in core-seconds, as the nodes' median.
func (f *Fleet) measure() {
	var costs []float64
	for _, m := range f.live {
		costs = append(costs, m.speed.Sample()*float64(max(m.session.workers, 1)))
	}
	if f.cost = pick.Usual(costs); f.cost == 0 {
		f.cost = unknownCost
	}
}

// takes reports whether a node may get one more want of count samples.
func (m *member) takes(count int) bool { return m.room(count) > 0 }

// room is how many more wants of count samples a node may get.
func (m *member) room(count int) int {
	return inFlight(m.session.workers, count) - len(m.session.wants)
}

// inFlight is how many wants of count samples keep a node busy: max(3, ⌈2 × cores ÷ batch⌉). More would only pile work up where
// nobody else can take it.
func inFlight(workers, count int) int {
	count = max(count, 1)
	return max(3, (2*workers+count-1)/count)
}

// hasRoom reports whether a node may get one more want of count samples.
func (f *Fleet) hasRoom(count int, now time.Time) bool {
	for _, m := range f.live {
		if m.usable() && !now.Before(m.busyUntil) && m.takes(count) {
			return true
		}
	}
	return false
}
