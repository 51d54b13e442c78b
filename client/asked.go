package client

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// asked is a want that is at a node. It belongs to the fleet's goroutine. A want is at two nodes at most, and each writes memory of its own.
type asked struct {
	want    *Want
	session *session
	attempt *node.Attempt
	trace   *Trace
	span    trace.Span // nil: none
	sent    time.Time
	begun   time.Time // that the node began with it, as far as is known
	// forecast and make are what was thought when it was sent, in seconds; see pick.Attempt.
	forecast, make float64
	spare          bool // it writes Want.spare, not Want.Dst
	cancelled      bool
	suspended      bool // this process was stopped since, and the node's clock was not
}

// send gives a want to a node; false if it is at another one and there is no memory for two.
func (fl *inFlight) send(w *Want, s *session, now time.Time) bool {
	dst, image, second := w.Dst, w.Image, w.lends(false)
	if second {
		if dst, image = w.another(), nil; dst == nil {
			return false
		}
	}
	if heard := s.stream.Heard(); len(s.wants) == 0 && !heard.Before(s.asked) && !heard.Before(s.dropped) {
		s.asked = now
	}
	m := s.member
	a := &asked{want: w, session: s, sent: now, spare: second, make: m.speed.Make(w.count)}
	a.forecast = m.speed.Finish(fl.chooser.load(m, w.count, now))
	a.trace = fl.traces.sent(w.seq, m.node.Addr(), now)
	a.attempt = &node.Attempt{Name: w.Name, Request: w.Request, Fields: fl.job.info.Load().GetFields(), Hedge: len(w.out) > 0}
	a.attempt.Dst, a.attempt.Image = dst, image
	if fl.chooser.elsewhere(w, m, now) {
		a.attempt.Deadline = time.Duration(pick.Deadline(&fl.took, w.missed) * float64(time.Second))
	}
	a.attempt.Begun = func() {
		now := time.Now()
		fl.job.inbox.put(func() { a.begins(now) })
	}
	a.attempt.Done = func(answer node.Answer) { fl.job.inbox.post(func() { fl.answered(a, answer) }) }
	fl.beginSpan(a)
	s.wants = append(s.wants, a)
	s.samples += w.count
	w.out = append(w.out, a)
	s.stream.Send(a.attempt)
	m.hand.Ask(fl.chooser.load(m, 0, now))
	return true
}

// begins notes that the node works on it.
func (a *asked) begins(now time.Time) {
	if a.begun.IsZero() {
		a.begun = now
	}
}

// working is for how many seconds the node has, as far as is known; negative: it has not begun.
func (a *asked) working(now time.Time) float64 {
	if a.begun.IsZero() {
		return -1
	}
	return now.Sub(a.begun).Seconds()
}

// lends reports whether a node has the want's first memory, or its second.
func (w *Want) lends(spare bool) bool {
	for _, a := range w.out {
		if a.spare == spare {
			return true
		}
	}
	return false
}

// fitsTwice reports whether there is memory for a second attempt beside the first.
func (w *Want) fitsTwice() bool { return !w.lends(false) || w.another() != nil }

// another is the memory for a second attempt; nil if there is none.
func (w *Want) another() []byte {
	if w.Spare == nil || w.lends(true) {
		return nil
	}
	if w.spare == nil {
		w.spare = w.Spare(len(w.Dst))
	}
	return w.spare
}

// isAt reports whether a node has the want.
func (w *Want) isAt(m *member) bool {
	for _, a := range w.out {
		if a.session.member == m {
			return true
		}
	}
	return false
}

// cancel gives an attempt up. Its answer comes all the same.
func (a *asked) cancel(why pb.CancelReason) {
	if !a.cancelled {
		a.cancelled, a.attempt.Reason = true, why
		a.session.dropped = time.Now()
		a.session.stream.Cancel(a.attempt)
	}
}

// takeAway gives up an attempt that takes too long, and learns from that.
func (fl *inFlight) takeAway(a *asked, why pb.CancelReason, now time.Time) {
	a.session.member.speed.Waited(a.want.count, a.waited(now).Seconds(), fl.job.clock(now))
	a.cancel(why)
}

// cancel gives up whatever is out.
func (w *Want) cancel() {
	for _, a := range w.out {
		a.cancel(pb.CancelReason_CANCEL_REASON_UNSPECIFIED)
	}
}

const (
	lookedAt = 16 // wants, of which it is looked whether they come in time
	hastened = 2  // of them at a time
)

// next are the wants at one node that are needed first, the first of them first.
func (q *queue) firstDue() []*Want {
	var all []*Want
	for w := range q.all {
		if w.final == nil && len(w.out) == 1 && !w.out[0].cancelled {
			all = append(all, w)
		}
	}
	sortByDue(all)
	return all[:min(len(all), lookedAt)]
}

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

// owes reports whether a want that was taken from a node has no other one yet. Until it has, no full node is counted on for a further one.
func (q *queue) owes() bool {
	for w := range q.all {
		if w.taken() {
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

// dueIn is in how many seconds the batch is needed; negative: it is late.
func (w *Want) dueIn(now time.Time) float64 {
	if w.Due.IsZero() {
		return math.Inf(-1)
	}
	return w.Due.Sub(now).Seconds()
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

// missed counts a deadline; it is the node's own failure if it had begun.
func (fl *inFlight) missed(a *asked, now time.Time) {
	fl.effort.Missed++
	a.want.missed++
	a.want.left = a.session.member
	if !a.begun.IsZero() {
		a.session.member.trust.Failed(fl.job.clock(now))
	}
}

// overtaken gives up the attempts of a want that another one was faster than. That is no failure: takeAway learns how slow the node is, and
// a slow one is asked for what is due late. One that hangs misses its deadline.
func (fl *inFlight) overtaken(w *Want, by *asked, now time.Time) {
	for _, a := range w.out {
		if a.sent.Before(by.sent) {
			fl.effort.HedgesWon++
		}
		fl.takeAway(a, pb.CancelReason_CANCEL_REASON_OVERTAKEN, now)
	}
}

// clock is a time as package pick takes it.
func (j *job) clock(t time.Time) float64 { return t.Sub(j.epoch).Seconds() }

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

// Effort tells what was done, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Effort() Effort {
	if e := f.efforts.Load(); e != nil {
		return *e
	}
	return Effort{}
}
