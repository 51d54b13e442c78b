package client

import (
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// assign gives wants from the queue to nodes, the earliest due first, each to the node that will have it soonest, counting what
// that node has in hand and what was planned for it before. A want whose node is full waits if that is worth it: so nodes that are much slower
// get wants that are due late, and none that a faster one makes much earlier.
func (fl *inFlight) assign(now time.Time) {
	fl.probe(now)
	fl.checkRefused()
	fl.rescue(now)
	if len(fl.queue.waiting) == 0 || !fl.chooser.hasRoom(fl.queue.waiting[0].count, now) {
		return
	}
	fl.chooser.measure()
	fl.chooser.weigh(now)
	sortByDue(fl.queue.waiting)
	waiting := fl.queue.waiting[:0]
assigning:
	for i, w := range fl.queue.waiting {
		m := fl.chooser.pick(w, now)
		switch {
		case m != nil && m.takes(w.count):
			fl.send(w, m.session, now)
			if !fl.chooser.hasRoom(w.count, now) { // most often: the node that has made one batch gets one want
				waiting = append(waiting, fl.queue.waiting[i+1:]...)
				break assigning
			}
			continue
		case m != nil:
			m.hand.Plan(w.count)
		default:
			if err := w.hopeless(fl.roster.members, now); err != nil {
				fl.finish(w, Result{Err: err})
				continue
			}
		}
		waiting = append(waiting, w)
	}
	clear(fl.queue.waiting[len(waiting):])
	fl.queue.waiting = waiting
}

// weigh looks at what the nodes have in hand, for pick.
func (ch *chooser) weigh(now time.Time) {
	for _, m := range ch.roster.live {
		m.hand.Begin(ch.load(m, 0, now))
	}
}

// pick is the node for a want by package pick, by what weigh saw and was sent since. It need not have room.
// Nil: none may be asked now.
func (ch *chooser) pick(w *Want, now time.Time) *member {
	law := pick.Assign(w.seq)
	for i, m := range ch.roster.live {
		if w.mayGo(m, now) {
			c := w.candidate(i, m)
			c.Finish = m.speed.Finish(m.hand.Load(w.count))
			law.Consider(&c)
		}
	}
	if i, found := law.Node(w.dueIn(now)); found {
		return ch.roster.live[i]
	}
	return nil
}

// rescue gives wants that were taken from a node to others, full ones too.
func (fl *inFlight) rescue(now time.Time) {
	if !slices.ContainsFunc(fl.queue.waiting, (*Want).taken) {
		return
	}
	sortByDue(fl.queue.waiting)
	fl.queue.waiting = slices.DeleteFunc(fl.queue.waiting, func(w *Want) bool {
		if !w.taken() {
			return false
		}
		other, _ := fl.chooser.rescuer(w, false, now)
		return other != nil && fl.send(w, other.session, now)
	})
}

// taken reports whether the want was taken from the node that had it, and none has it since.
func (w *Want) taken() bool {
	return w.left != nil && w.final == nil && (len(w.out) == 0 || len(w.out) == 1 && w.out[0].cancelled)
}

// rescuer is the node that would have a want soonest which is needed next and is at another node, or was, and
// in how many seconds. begun says that the other node has begun with it. Nil: there is none.
func (ch *chooser) rescuer(w *Want, begun bool, now time.Time) (m *member, finish float64) {
	law := pick.NewRescue(w.seq, w.dueIn(now), begun)
	for i, m := range ch.roster.live {
		if !w.mayGo(m, now) {
			continue
		}
		if c := w.candidate(i, m); law.Admits(&c) {
			c.Finish = m.speed.Finish(ch.loadBefore(m, w, now))
			law.Consider(&c)
		}
	}
	i, finish, found := law.Node()
	if !found {
		return nil, finish
	}
	return ch.roster.live[i], finish
}

// mayGo reports whether a node may be asked for a want now that does not have it yet.
func (w *Want) mayGo(m *member, now time.Time) bool {
	t := w.tries[m]
	return m.usable() && !now.Before(m.busyUntil) && t.failures < maxTries && !now.Before(t.again) && !w.isAt(m)
}

// candidate is the i-th node as package pick sees it, without Finish.
func (w *Want) candidate(i int, m *member) pick.Candidate {
	return pick.Candidate{
		Node: i, Failures: w.tries[m].failures, Left: w.left == m,
		Doubted: m.trust.Doubted(), Helps: m.trust.Helps(), Unfit: m.shuns(w),
		Room: m.room(w.count), Score: m.score,
	}
}

// elsewhere reports whether another node than m could take a want.
func (ch *chooser) elsewhere(w *Want, m *member, now time.Time) bool {
	for _, other := range ch.roster.live {
		if other != m && other.usable() && !now.Before(other.busyUntil) && w.tries[other].failures < maxTries {
			return true
		}
	}
	return false
}

// load is what a node has in hand, with count samples more.
func (ch *chooser) load(m *member, count int, now time.Time) pick.Load {
	s := m.session
	return pick.Load{
		Held: s.samples, Unheard: s.unheard(), Waited: s.waited(now), Count: count,
		Usual: ch.cost / float64(max(s.workers, 1)), Now: ch.job.clock(now),
	}
}

// loadBefore is what a node makes before a want, and it: what is needed later goes behind, unless the node has begun with it.
func (ch *chooser) loadBefore(m *member, w *Want, now time.Time) pick.Load {
	load := ch.load(m, w.count, now)
	for _, a := range m.session.wants {
		if !a.begun.IsZero() || w.compare(a.want) >= 0 {
			continue
		}
		load.Overtake(a.want.count, m.session.heardOf(a))
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

// heardOf reports whether the node had heard of an attempt when it spoke last.
func (s *session) heardOf(a *asked) bool { return a.attempt.ID <= s.heard }

// unheard is the samples of wants that the node had not heard of when it spoke last.
func (s *session) unheard() int {
	n := 0
	for _, a := range s.wants {
		if !s.heardOf(a) {
			n += a.want.count
		}
	}
	return n
}

// measure takes what a sample costs in core-seconds, as the nodes' median.
func (ch *chooser) measure() {
	var costs []float64
	for _, m := range ch.roster.live {
		costs = append(costs, m.speed.Sample()*float64(max(m.session.workers, 1)))
	}
	ch.cost = pick.Cost(costs)
}

// takes reports whether a node may get one more want of count samples.
func (m *member) takes(count int) bool { return m.room(count) > 0 }

// room is how many more wants of count samples a node may get.
func (m *member) room(count int) int {
	return pick.InFlight(m.session.workers, count) - len(m.session.wants)
}

// hasRoom reports whether a node may get one more want of count samples.
func (ch *chooser) hasRoom(count int, now time.Time) bool {
	for _, m := range ch.roster.live {
		if m.usable() && !now.Before(m.busyUntil) && m.takes(count) {
			return true
		}
	}
	return false
}
