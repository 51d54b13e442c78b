package client

import (
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// rescueLateWants sees to wants that take longer than they should: those that are needed next are moved or hedged, and
// whichever misses its deadline is given up.
func (fl *inFlight) rescueLateWants(now time.Time) {
	fl.chooser.refreshLoads(now)
	left := maxRescues
	for _, w := range fl.queue.firstDue() {
		if left > 0 && fl.rescueWant(w.attempts[0], now) {
			left--
		}
	}
	for _, m := range fl.roster.live {
		fl.expireAttempts(m.session, now)
	}
}

// rescueWant asks another node for a batch that is needed next, if that brings it sooner.
func (fl *inFlight) rescueWant(a *attempt, now time.Time) bool {
	w, m := a.want, a.session.member
	if m.session != a.session { // the stream has ended, and the attempt's answer is on its way
		return false
	}
	at := fl.describeAttempt(a, now)
	other, finish := fl.chooser.pickRescuer(w, at.Begun >= 0, now)
	if other == nil {
		return false
	}
	switch at.Choose(finish) {
	case pick.Move:
		if !other.hasRoom(w.count) && fl.queue.hasAbandoned() {
			return false
		}
		fl.effort.Moves++
		w.moves++
		w.lastNode = m
		fl.abandonAttempt(a, pb.CancelReason_CANCEL_REASON_MOVED, now)
		return true
	case pick.Hedge:
		if w.fitsTwice() && (fl.hedges.TakeHedge() || fl.grantHedge(now)) && fl.sendWant(w, other.session, now) {
			fl.effort.Hedges++
			return true
		}
	}
	return false
}

// grantHedge grants a hedge a second while no batch comes. Nothing is earned then, for the loop wants nothing either.
func (fl *inFlight) grantHedge(now time.Time) bool {
	if now.Sub(fl.lastProgress) < time.Second || now.Sub(fl.lastGrant) < time.Second {
		return false
	}
	fl.lastGrant = now
	return true
}

// describeAttempt is an attempt as package pick sees it.
func (fl *inFlight) describeAttempt(a *attempt, now time.Time) pick.Attempt {
	speed, load := &a.session.member.speed, fl.chooser.loadBefore(a.session.member, a.want, now)
	load.RemoveBatch(a.want.count, a.session.hasHeardOf(a))
	load.Count = 0
	p := pick.Attempt{
		Due: a.want.dueIn(now), Age: now.Sub(a.sent).Seconds(), Begun: a.workingSeconds(now),
		Forecast: a.forecast, Make: a.make, Rest: speed.FinishSeconds(load), Takes: float64(a.want.count) * speed.SampleSeconds(), Moves: a.want.moves,
	}
	if p.Make == 0 { // nothing was known of it
		p.Make = fl.totalTimes.Value()
	}
	return p
}

// expireAttempts gives up attempts whose deadlines are over.
func (fl *inFlight) expireAttempts(s *session, now time.Time) {
	for _, a := range s.attempts {
		if a.request.Deadline == 0 || a.cancelled || !pick.IsExpired(now.Sub(a.sent).Seconds(), a.workingSeconds(now), &fl.totalTimes, &fl.makeTimes, a.want.missedDeadlines) {
			continue
		}
		fl.job.log.Warn("a node missed a deadline: the batch is fetched elsewhere", "node", s.member.node.Addr(), "after", now.Sub(a.sent).Round(time.Millisecond))
		fl.countMissedDeadline(a, now)
		fl.abandonAttempt(a, pb.CancelReason_CANCEL_REASON_LATE, now)
	}
}

// checkSilence takes the wants of a node that has fallen silent away, and gives a node that speaks again its place
// back.
func (fl *inFlight) checkSilence(s *session, now time.Time) {
	q, heard := &s.silence, s.stream.Heard()
	if q.on && heard.After(q.since) {
		fl.job.log.Info("node speaks again", "node", s.member.node.Addr())
		*q = silence{}
	}
	owes := heard.Before(s.firstAsked) // an answer, be it to wants that were cancelled since
	if owes {
		heard = s.firstAsked
	}
	if heard.Before(fl.resumed) { // nobody listened before
		heard = fl.resumed
	}
	if len(s.attempts) == 0 && !owes || now.Sub(heard) <= silentAfter {
		return
	}
	if !q.on {
		fl.job.log.Warn("node silent: its wants go elsewhere", "node", s.member.node.Addr(), "wants", len(s.attempts))
		*q = silence{on: true, since: now, delay: probeMin, probe: now.Add(probeMin)}
	}
	for _, a := range s.attempts {
		a.cancel(pb.CancelReason_CANCEL_REASON_SILENT)
	}
}

const (
	tickEvery   = 100 * time.Millisecond
	silentAfter = time.Second // a node that holds wants speaks every 0.25 s
	remindFirst = 3 * time.Second
	remindEvery = 30 * time.Second
	remindScans = 10 * time.Second // while a node lists files
)
