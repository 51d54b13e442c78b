package client

import (
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// chooser says which node is asked for a want, by package pick. It changes nothing but what it has planned. It belongs
// to the fleet's goroutine.
type chooser struct {
	job    *job
	roster *roster
	queue  *queue
	cost   float64 // core-seconds of a sample
}

// refreshLoads takes the load of each node, for pickNode.
func (ch *chooser) refreshLoads(now time.Time) {
	for _, m := range ch.roster.live {
		m.backlog.Reset(ch.loadOf(m, 0, now))
	}
}

// pickNode is the node for a want by package pick, by the loads that refreshLoads took and what was sent since. It need
// not have room. Nil: none may be asked now.
func (ch *chooser) pickNode(w *Want, now time.Time) *member {
	law := pick.NewAssignment(w.seq)
	for i, m := range ch.roster.live {
		if w.isEligible(m, now) {
			c := w.candidateFor(i, m)
			c.Finish = m.speed.FinishSeconds(m.backlog.LoadWith(w.count))
			law.Consider(&c)
		}
	}
	if i, found := law.Node(w.dueIn(now)); found {
		return ch.roster.live[i]
	}
	return nil
}

// pickRescuer is the other node that would finish an urgent want first, and in how many seconds it would. begun says
// that the node that has the want has begun with it. Nil: there is none.
func (ch *chooser) pickRescuer(w *Want, begun bool, now time.Time) (m *member, finish float64) {
	law := pick.NewRescue(w.seq, w.dueIn(now), begun)
	for i, m := range ch.roster.live {
		if !w.isEligible(m, now) {
			continue
		}
		if c := w.candidateFor(i, m); law.Admits(&c) {
			c.Finish = m.speed.FinishSeconds(ch.loadBefore(m, w, now))
			law.Consider(&c)
		}
	}
	i, finish, found := law.Node()
	if !found {
		return nil, finish
	}
	return ch.roster.live[i], finish
}

// hasAlternative reports whether another node than m could take a want.
func (ch *chooser) hasAlternative(w *Want, m *member, now time.Time) bool {
	for _, other := range ch.roster.live {
		if other != m && other.isUsable() && !now.Before(other.busyUntil) && w.nodeFailures[other].count < maxTries {
			return true
		}
	}
	return false
}

// loadOf is what a node has in hand, with count samples more.
func (ch *chooser) loadOf(m *member, count int, now time.Time) pick.Load {
	s := m.session
	return pick.Load{
		Held: s.samples, Unheard: s.unheardSamples(), Waited: s.waitedPerSample(now), Count: count,
		Usual: ch.cost / float64(max(s.workers, 1)), Now: ch.job.clock(now),
	}
}

// loadBefore is what a node makes before a want, and it: what is needed later goes behind, unless the node has begun
// with it.
func (ch *chooser) loadBefore(m *member, w *Want, now time.Time) pick.Load {
	load := ch.loadOf(m, w.count, now)
	for _, a := range m.session.attempts {
		if !a.begun.IsZero() || w.compareDue(a.want) >= 0 {
			continue
		}
		load.OvertakeBatch(a.want.count, m.session.hasHeardOf(a))
	}
	return load
}

// measureCost takes what a sample costs in core-seconds, as the nodes' median.
func (ch *chooser) measureCost() {
	var costs []float64
	for _, m := range ch.roster.live {
		costs = append(costs, m.speed.SampleSeconds()*float64(max(m.session.workers, 1)))
	}
	ch.cost = pick.SampleCost(costs)
}

// hasRoom reports whether a node may get one more want of count samples.
func (ch *chooser) hasRoom(count int, now time.Time) bool {
	for _, m := range ch.roster.live {
		if m.isUsable() && !now.Before(m.busyUntil) && m.hasRoom(count) {
			return true
		}
	}
	return false
}

// wouldBeLate reports whether a want that is not late yet would be, if m made it as slowly as is known of it.
func (ch *chooser) wouldBeLate(w *Want, m *member, now time.Time) bool {
	due := w.Due.Sub(now).Seconds()
	return due > 0 && due < m.speed.FinishSeconds(ch.loadOf(m, w.count, now))
}

// leastUrgent is the index of the latest-due waiting want that no node gave back; one that a node gave back counts too
// where no node but m could take it. -1 if there is none.
func (ch *chooser) leastUrgent(m *member, now time.Time) int {
	at := -1
	for i, w := range ch.queue.waiting {
		if (w.lastNode == nil || !ch.hasAlternative(w, m, now)) && (at < 0 || w.compareDue(ch.queue.waiting[at]) > 0) {
			at = i
		}
	}
	return at
}

// isEligible reports whether a node may be asked for a want now that does not have it yet.
func (w *Want) isEligible(m *member, now time.Time) bool {
	t := w.nodeFailures[m]
	return m.isUsable() && !now.Before(m.busyUntil) && t.count < maxTries && !now.Before(t.retryAt) && !w.isAt(m)
}

// candidateFor is the i-th node as package pick sees it, without Finish.
func (w *Want) candidateFor(i int, m *member) pick.Candidate {
	return pick.Candidate{
		Node: i, Failures: w.nodeFailures[m].count, Left: w.lastNode == m,
		Doubted: m.trust.IsDoubted(), Helps: m.trust.MayHelp(), Unfit: m.isUnfitFor(w),
		Room: m.roomFor(w.count), Score: m.score,
	}
}
