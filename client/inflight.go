package client

import (
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// inFlight are the wants that are at nodes: it sends them, takes their answers, and asks other nodes where one is late. It belongs to the fleet's
// goroutine.
type inFlight struct {
	job     *job
	roster  *roster
	queue   *queue
	chooser *chooser

	lastProgress time.Time   // of the last batch, or of the first want after there was none, or of Open
	totalTimes   pick.Median // seconds that wants took, and without the queue
	makeTimes    pick.Median
	hedges       pick.HedgeBudget
	lastGrant    time.Time // of the last hedge that was not earned
	effort       Effort
	traces       traces
	resumed      time.Time // when this process ran again that had been stopped
}

// Effort is what a fleet did to have its batches in time. Counters since Open.
type Effort struct {
	// Batches and Samples delivered, and samples of batches that a node had begun with or made, and that were not used: extra work.
	Batches uint64 `json:"batches"`
	Samples uint64 `json:"samples"`
	Extra   uint64 `json:"extra"`
	// Hedges are second attempts at a batch that a node was slow with; HedgesWon came first.
	Hedges    uint64 `json:"hedges"`
	HedgesWon uint64 `json:"hedges_won"`
	// Moves are wants that were taken from a node before it began; Missed are deadlines that nodes missed.
	Moves  uint64 `json:"moves"`
	Missed uint64 `json:"missed"`
}

// sendWant gives a want to a node; false if it is at another one and there is no memory for two.
func (fl *inFlight) sendWant(w *Want, s *session, now time.Time) bool {
	dst, image, second := w.Dst, w.Image, w.hasLent(false)
	if second {
		if dst, image = w.secondMemory(), nil; dst == nil {
			return false
		}
	}
	if heard := s.stream.Heard(); len(s.attempts) == 0 && !heard.Before(s.firstAsked) && !heard.Before(s.lastCancel) {
		s.firstAsked = now
	}
	m := s.member
	a := &attempt{want: w, session: s, sent: now, spare: second, make: m.speed.MakeSeconds(w.count)}
	a.forecast = m.speed.FinishSeconds(fl.chooser.loadOf(m, w.count, now))
	a.trace = fl.traces.addAttempt(w.seq, m.node.Addr(), now)
	a.request = &node.Attempt{Name: w.Name, Request: w.Request, Fields: fl.job.info.Load().GetFields(), Hedge: len(w.attempts) > 0}
	a.request.Dst, a.request.Image = dst, image
	if fl.chooser.hasAlternative(w, m, now) {
		a.request.Deadline = time.Duration(pick.Deadline(&fl.totalTimes, w.missedDeadlines) * float64(time.Second))
	}
	a.request.Begun = func() {
		now := time.Now()
		fl.job.inbox.postDeferred(func() { a.markBegun(now) })
	}
	a.request.Done = func(answer node.Answer) { fl.job.inbox.post(func() { fl.handleAnswer(a, answer) }) }
	fl.beginSpan(a)
	s.attempts = append(s.attempts, a)
	s.samples += w.count
	w.attempts = append(w.attempts, a)
	s.stream.Send(a.request)
	m.backlog.SetLoad(fl.chooser.loadOf(m, 0, now))
	return true
}

// assignWants gives wants from the queue to nodes, the earliest due first, each to the node that will have it soonest, counting what
// that node has in hand and what was planned for it before. A want whose node is full waits if that is worth it: so nodes that are much slower
// get wants that are due late, and none that a faster one makes much earlier.
func (fl *inFlight) assignWants(now time.Time) {
	fl.sendProbes(now)
	fl.checkRefused()
	fl.resendAbandoned(now)
	if len(fl.queue.waiting) == 0 || !fl.chooser.hasRoom(fl.queue.waiting[0].count, now) {
		return
	}
	fl.chooser.measureCost()
	fl.chooser.refreshLoads(now)
	sortByDue(fl.queue.waiting)
	waiting := fl.queue.waiting[:0]
assigning:
	for i, w := range fl.queue.waiting {
		m := fl.chooser.pickNode(w, now)
		switch {
		case m != nil && m.hasRoom(w.count):
			fl.sendWant(w, m.session, now)
			if !fl.chooser.hasRoom(w.count, now) { // most often: the node that has made one batch gets one want
				waiting = append(waiting, fl.queue.waiting[i+1:]...)
				break assigning
			}
			continue
		case m != nil:
			m.backlog.AddPlanned(w.count)
		default:
			if err := w.checkHopeless(fl.roster.members, now); err != nil {
				fl.finishWant(w, Result{Err: err})
				continue
			}
		}
		waiting = append(waiting, w)
	}
	clear(fl.queue.waiting[len(waiting):])
	fl.queue.waiting = waiting
}

// resendAbandoned gives wants that were taken from a node to others, full ones too.
func (fl *inFlight) resendAbandoned(now time.Time) {
	if !slices.ContainsFunc(fl.queue.waiting, (*Want).isAbandoned) {
		return
	}
	sortByDue(fl.queue.waiting)
	fl.queue.waiting = slices.DeleteFunc(fl.queue.waiting, func(w *Want) bool {
		if !w.isAbandoned() {
			return false
		}
		other, _ := fl.chooser.pickRescuer(w, false, now)
		return other != nil && fl.sendWant(w, other.session, now)
	})
}

// addWant takes a want in.
func (fl *inFlight) addWant(w *Want) {
	if len(fl.queue.all) == 0 {
		fl.lastProgress = time.Now()
	}
	fl.queue.seq++
	w.seq, w.count = fl.queue.seq, node.CountSamples(w.Name)
	fl.roster.wantSamples = w.count
	fl.queue.all[w] = struct{}{}
	fl.queue.waiting = append(fl.queue.waiting, w)
	fl.hedges.AddWant()
}

// failWant ends a want with an error, at once or when no node can write its memory any more.
func (fl *inFlight) failWant(w *Want, err error) {
	if _, ok := fl.queue.all[w]; !ok || w.outcome != nil {
		return
	}
	if len(w.attempts) == 0 {
		fl.queue.removeWaiting(w)
		fl.finishWant(w, Result{Err: err})
		return
	}
	w.outcome = &Result{Err: err}
	w.cancelAttempts()
}

func (fl *inFlight) finishWant(w *Want, r Result) {
	w.Span.recordResult(&r)
	delete(fl.queue.all, w)
	w.Done(r)
}

// cancelSlower gives up the attempts of a want that another one was faster than. That is no failure: abandonAttempt learns how slow the node is, and
// a slow one is asked for what is due late. One that hangs misses its deadline.
func (fl *inFlight) cancelSlower(w *Want, by *attempt, now time.Time) {
	for _, a := range w.attempts {
		if a.sent.Before(by.sent) {
			fl.effort.HedgesWon++
		}
		fl.abandonAttempt(a, pb.CancelReason_CANCEL_REASON_OVERTAKEN, now)
	}
}

// countMissedDeadline counts a deadline; it is the node's own failure if it had begun.
func (fl *inFlight) countMissedDeadline(a *attempt, now time.Time) {
	fl.effort.Missed++
	a.want.missedDeadlines++
	a.want.lastNode = a.session.member
	if !a.begun.IsZero() {
		a.session.member.trust.RecordFailure(fl.job.clock(now))
	}
}

// abandonAttempt gives up an attempt that takes too long, and counts that against the speed of its node.
func (fl *inFlight) abandonAttempt(a *attempt, why pb.CancelReason, now time.Time) {
	a.session.member.speed.RecordWait(a.want.count, a.waitTime(now).Seconds(), fl.job.clock(now))
	a.cancel(why)
}

// checkRefused gives up all wants when every node has been left out before the first batch came, or this process itself was: waiting would
// not help. Later on it may: a node has restarted before its data was there, a list of nodes is wrong for a while.
func (fl *inFlight) checkRefused() {
	if len(fl.queue.waiting) == 0 || !fl.roster.allLeftOut() || fl.effort.Batches > 0 && !fl.roster.isAlone() {
		return
	}
	err := fl.roster.allErrors()
	for _, w := range fl.queue.waiting {
		fl.finishWant(w, Result{Err: err})
	}
	fl.queue.waiting = nil
}

// timeout is how long may be waited for a batch.
func (fl *inFlight) timeout() time.Duration {
	if fl.effort.Batches == 0 {
		return fl.job.options.StartTimeout
	}
	return fl.job.options.Timeout
}
