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

	progress time.Time   // of the last batch, or of the first want after there was none, or of Open
	took     pick.Median // seconds that wants took, and without the queue
	making   pick.Median
	hedges   pick.Bank
	granted  time.Time // of the last hedge that was not earned
	effort   Effort
	traces   traces
	resumed  time.Time // when this process ran again that had been stopped
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

// submit takes a want in.
func (fl *inFlight) submit(w *Want) {
	if len(fl.queue.all) == 0 {
		fl.progress = time.Now()
	}
	fl.queue.seq++
	w.seq, w.count = fl.queue.seq, node.CountSamples(w.Name)
	fl.roster.count = w.count
	fl.queue.all[w] = struct{}{}
	fl.queue.waiting = append(fl.queue.waiting, w)
	fl.hedges.Earn()
}

// decide ends a want with an error, at once or when no node can write its memory any more.
func (fl *inFlight) decide(w *Want, err error) {
	if _, ok := fl.queue.all[w]; !ok || w.final != nil {
		return
	}
	if len(w.out) == 0 {
		fl.queue.remove(w)
		fl.finish(w, Result{Err: err})
		return
	}
	w.final = &Result{Err: err}
	w.cancel()
}

func (fl *inFlight) finish(w *Want, r Result) {
	w.Span.settle(&r)
	delete(fl.queue.all, w)
	w.Done(r)
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

// missed counts a deadline; it is the node's own failure if it had begun.
func (fl *inFlight) missed(a *asked, now time.Time) {
	fl.effort.Missed++
	a.want.missed++
	a.want.left = a.session.member
	if !a.begun.IsZero() {
		a.session.member.trust.Failed(fl.job.clock(now))
	}
}

// takeAway gives up an attempt that takes too long, and learns from that.
func (fl *inFlight) takeAway(a *asked, why pb.CancelReason, now time.Time) {
	a.session.member.speed.Waited(a.want.count, a.waited(now).Seconds(), fl.job.clock(now))
	a.cancel(why)
}

// checkRefused gives up all wants when every node has been left out before the first batch came, or this process itself was: waiting would
// not help. Later on it may: a node has restarted before its data was there, a list of nodes is wrong for a while.
func (fl *inFlight) checkRefused() {
	if len(fl.queue.waiting) == 0 || !fl.roster.allLeftOut() || fl.effort.Batches > 0 && !fl.roster.alone() {
		return
	}
	err := fl.roster.allErrors()
	for _, w := range fl.queue.waiting {
		fl.finish(w, Result{Err: err})
	}
	fl.queue.waiting = nil
}

// limit is how long may be waited for a batch.
func (fl *inFlight) limit() time.Duration {
	if fl.effort.Batches == 0 {
		return fl.job.options.StartTimeout
	}
	return fl.job.options.Timeout
}
