package client

import (
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// tend sees to wants that take longer than they should: those that are needed next are moved or hedged, and whichever misses its deadline
// is given up.
func (fl *inFlight) tend(now time.Time) {
	fl.chooser.weigh(now)
	left := hastened
	for _, w := range fl.queue.firstDue() {
		if left > 0 && fl.hasten(w.out[0], now) {
			left--
		}
	}
	for _, m := range fl.roster.live {
		fl.expire(m.session, now)
	}
}

// hasten asks another node for a batch that is needed next, if that brings it sooner.
func (fl *inFlight) hasten(a *asked, now time.Time) bool {
	w, m := a.want, a.session.member
	at := fl.about(a, now)
	other, finish := fl.chooser.rescuer(w, at.Begun >= 0, now)
	if other == nil {
		return false
	}
	switch at.Choose(finish) {
	case pick.Move:
		if !other.takes(w.count) && fl.queue.owes() {
			return false
		}
		fl.effort.Moves++
		w.moves++
		w.left = m
		fl.takeAway(a, pb.CancelReason_CANCEL_REASON_MOVED, now)
		return true
	case pick.Hedge:
		if w.fitsTwice() && (fl.hedges.Take() || fl.stuck(now)) && fl.send(w, other.session, now) {
			fl.effort.Hedges++
			return true
		}
	}
	return false
}

// stuck grants a hedge a second while no batch comes. Nothing is earned then, for the loop wants nothing either.
func (fl *inFlight) stuck(now time.Time) bool {
	if now.Sub(fl.progress) < time.Second || now.Sub(fl.granted) < time.Second {
		return false
	}
	fl.granted = now
	return true
}

// about is an attempt as package pick sees it.
func (fl *inFlight) about(a *asked, now time.Time) pick.Attempt {
	speed, load := &a.session.member.speed, fl.chooser.loadBefore(a.session.member, a.want, now)
	load.Remove(a.want.count, a.session.heardOf(a))
	load.Count = 0
	p := pick.Attempt{
		Due: a.want.dueIn(now), Age: now.Sub(a.sent).Seconds(), Begun: a.working(now),
		Forecast: a.forecast, Make: a.make, Rest: speed.Finish(load), Takes: float64(a.want.count) * speed.Sample(), Moves: a.want.moves,
	}
	if p.Make == 0 { // nothing was known of it
		p.Make = fl.took.Value()
	}
	return p
}

// expire gives up attempts whose deadlines are over.
func (fl *inFlight) expire(s *session, now time.Time) {
	for _, a := range s.wants {
		if a.attempt.Deadline == 0 || a.cancelled || !pick.Expired(now.Sub(a.sent).Seconds(), a.working(now), &fl.took, &fl.making, a.want.missed) {
			continue
		}
		fl.job.log.Warn("a node missed a deadline: the batch is fetched elsewhere", "node", s.member.node.Addr(), "after", now.Sub(a.sent).Round(time.Millisecond))
		fl.missed(a, now)
		fl.takeAway(a, pb.CancelReason_CANCEL_REASON_LATE, now)
	}
}

// probe gives nodes that are silent or doubted one want now and then, the one that is needed last.
func (fl *inFlight) probe(now time.Time) {
	for _, m := range fl.roster.live {
		if len(m.session.wants) > 0 || !m.session.silence.on && !m.trust.Doubted() {
			continue
		}
		if at := fl.chooser.spared(m, now); at >= 0 && !fl.chooser.wouldBeLate(fl.queue.waiting[at], m, now) && m.mayBeProbed(fl.job.clock(now), now) {
			w := fl.queue.waiting[at]
			fl.queue.waiting = slices.Delete(fl.queue.waiting, at, at+1)
			fl.send(w, m.session, now)
		}
	}
}

// listen takes the wants of a node that has fallen silent away, and gives a node that speaks again its place back.
func (fl *inFlight) listen(s *session, now time.Time) {
	q, heard := &s.silence, s.stream.Heard()
	if q.on && heard.After(q.since) {
		fl.job.log.Info("node speaks again", "node", s.member.node.Addr())
		*q = silence{}
	}
	owes := heard.Before(s.asked) // an answer, be it to wants that were cancelled since
	if owes {
		heard = s.asked
	}
	if heard.Before(fl.resumed) { // nobody listened before
		heard = fl.resumed
	}
	if len(s.wants) == 0 && !owes || now.Sub(heard) <= silentAfter {
		return
	}
	if !q.on {
		fl.job.log.Warn("node silent: its wants go elsewhere", "node", s.member.node.Addr(), "wants", len(s.wants))
		*q = silence{on: true, since: now, delay: probeMin, probe: now.Add(probeMin)}
	}
	for _, a := range s.wants {
		a.cancel(pb.CancelReason_CANCEL_REASON_SILENT)
	}
}

const (
	tickEvery   = 100 * time.Millisecond
	silentAfter = time.Second // a node that holds wants speaks every 0.25 s
	probeMin    = time.Second
	probeMax    = 30 * time.Second
	remindFirst = 3 * time.Second
	remindEvery = 30 * time.Second
	remindScans = 10 * time.Second // while a node lists files
)
