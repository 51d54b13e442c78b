package client

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	"github.com/feedwater-io/feedwater/span"
)

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

// assignWants gives wants from the queue to nodes, the earliest due first, each to the node that will have it soonest,
// counting what that node has in hand and what was planned for it before. A want whose node is full waits if that is
// worth it: so nodes that are much slower get wants that are due late, and none that a faster one makes much earlier.
func (fl *inFlight) assignWants(now time.Time) {
	fl.sendProbes(now)
	fl.checkRefused(now)
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
			if err := w.checkHopeless(fl.roster, now); err != nil {
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

// checkRefused gives up all wants when every node has been left out before the first batch came, or this process itself
// was: waiting would not help. Later on it may: a node has restarted before its data was there, a list of nodes is
// wrong for a while.
func (fl *inFlight) checkRefused(now time.Time) {
	if len(fl.queue.waiting) == 0 || !fl.roster.allLeftOut() || fl.roster.awaitsReturn(now) || fl.effort.Batches > 0 && !fl.roster.isAlone() {
		return
	}
	err := fl.roster.allErrors()
	for _, w := range fl.queue.waiting {
		fl.finishWant(w, Result{Err: err})
	}
	fl.queue.waiting = nil
}

// sendProbes gives nodes that are silent or doubted one want now and then, the one that is needed last.
func (fl *inFlight) sendProbes(now time.Time) {
	for _, m := range fl.roster.live {
		if len(m.session.attempts) > 0 || !m.session.silence.on && !m.trust.IsDoubted() {
			continue
		}
		if at := fl.chooser.leastUrgent(m, now); at >= 0 && !fl.chooser.wouldBeLate(fl.queue.waiting[at], m, now) && m.takeProbe(fl.job.clock(now), now) {
			w := fl.queue.waiting[at]
			fl.queue.waiting = slices.Delete(fl.queue.waiting, at, at+1)
			fl.sendWant(w, m.session, now)
		}
	}
}

// beginSpan begins the span of an attempt, if its want is traced, and tells the node of it. Where the process's own
// pipeline is the only node there is nothing to tell of attempts: what it says is the batch's.
func (fl *inFlight) beginSpan(a *attempt) {
	if a.want.Span == nil {
		return
	}
	parent := a.want.Span.span.SpanContext()
	if addr := a.session.member.node.Addr(); addr != node.Local || len(fl.roster.members) > 1 {
		_, a.span = fl.job.options.Tracer.Start(span.Below(parent), span.Attempt, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(a.sent),
			trace.WithAttributes(span.Node.String(span.Text(addr)), span.Hedge.Bool(a.request.Hedge)))
		parent = a.span.SpanContext()
	}
	a.request.Traceparent = span.Format(parent)
}
