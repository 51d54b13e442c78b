package client

import (
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// chooser says which node is asked for a want, by package pick. It changes nothing but what it has planned. It belongs to the fleet's goroutine.
type chooser struct {
	job    *job
	roster *roster
	queue  *queue
	cost   float64 // core-seconds of a sample
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

// measure takes what a sample costs in core-seconds, as the nodes' median.
func (ch *chooser) measure() {
	var costs []float64
	for _, m := range ch.roster.live {
		costs = append(costs, m.speed.Sample()*float64(max(m.session.workers, 1)))
	}
	ch.cost = pick.Cost(costs)
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

// wouldBeLate reports whether a want that is not late yet would be, if m made it as slowly as is known of it.
func (ch *chooser) wouldBeLate(w *Want, m *member, now time.Time) bool {
	due := w.Due.Sub(now).Seconds()
	return due > 0 && due < m.speed.Finish(ch.load(m, w.count, now))
}

// spared is where in the queue the want is that is needed last of those that were taken from no node before, unless nobody else can have
// them; -1 if there is none.
func (ch *chooser) spared(m *member, now time.Time) int {
	at := -1
	for i, w := range ch.queue.waiting {
		if (w.left == nil || !ch.elsewhere(w, m, now)) && (at < 0 || w.compare(ch.queue.waiting[at]) > 0) {
			at = i
		}
	}
	return at
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
