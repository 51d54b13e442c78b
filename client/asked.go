package client

import (
	"math"
	"time"

	"github.com/feedwater-io/feedwater/control/pick"
)

// asked is a want that is at a node. It belongs to the fleet's goroutine. A want is at two nodes at most, and each writes memory of its own.
type asked struct {
	want    *Want
	session *session
	attempt *Attempt
	trace   *Trace
	sent    time.Time
	begun   time.Time // that the node began with it, as far as is known
	expires time.Time // zero: never
	// forecast and make are what was thought when it was sent, in seconds; see pick.Attempt.
	forecast, make float64
	spare          bool // it writes Want.spare, not Want.Dst
}

// send gives a want to a node; false if it is at another one and there is no memory for two.
func (f *Fleet) send(w *Want, s *session, now time.Time) bool {
	dst, image, second := w.Dst, w.Image, w.lends(false)
	if second {
		if dst, image = w.another(), nil; dst == nil {
			return false
		}
	}
	if len(s.wants) == 0 && !s.stream.Heard().Before(s.asked) {
		s.asked = now
	}
	m := s.member
	a := &asked{want: w, session: s, sent: now, spare: second, make: m.speed.Make(w.count)}
	a.forecast = m.speed.Finish(f.load(m, w.count, now))
	a.trace = f.traces.sent(w.seq, m.node.Addr(), now)
	a.attempt = &Attempt{Name: w.Name, Dst: dst, Grow: w.Grow, Image: image, Due: w.Due, layout: f.info.Load().GetFields()}
	if f.elsewhere(w, m, now) {
		d := pick.Deadline(&f.took, w.missed)
		a.attempt.Deadline = time.Duration(d * float64(time.Second))
		a.expires = now.Add(a.attempt.Deadline)
	}
	a.attempt.Done = func(answer Answer) { f.inbox.post(func() { f.answered(a, answer) }) }
	s.wants = append(s.wants, a)
	s.samples += w.count
	w.out = append(w.out, a)
	s.stream.Send(a.attempt)
	return true
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
func (a *asked) cancel() { a.session.stream.Cancel(a.attempt) }

// cancel gives up whatever is out.
func (w *Want) cancel() {
	for _, a := range w.out {
		a.cancel()
	}
}

// next are the wants that are needed first, two at most.
func (f *Fleet) next() (first, second *Want) {
	for w := range f.wants {
		switch {
		case w.final != nil:
		case first == nil || w.before(first):
			first, second = w, first
		case second == nil || w.before(second):
			second = w
		}
	}
	return first, second
}

// tend sees to wants that take longer than they should: those that are needed next are moved or hedged, and whichever misses its deadline
// is given up.
func (f *Fleet) tend(now time.Time) {
	first, second := f.next()
	for _, w := range []*Want{first, second} {
		if w != nil && len(w.out) == 1 {
			f.hasten(w.out[0], now)
		}
	}
	for _, m := range f.members {
		if m.session == nil {
			continue
		}
		for _, a := range m.session.wants {
			if !a.expires.IsZero() && !now.Before(a.expires) && a.want.final == nil {
				f.expire(a, now)
			}
		}
	}
}

// hasten asks another node for a batch that is needed next, if that brings it sooner.
func (f *Fleet) hasten(a *asked, now time.Time) {
	w, m := a.want, a.session.member
	other := f.pick(w, now)
	if other == nil || other == m || other.trust.Doubted() || !other.takes(w.count) {
		return
	}
	load := f.load(m, 0, now)
	load.Held -= w.count
	about := pick.Attempt{
		Due: math.Inf(-1), Age: now.Sub(a.sent).Seconds(), Begun: -1,
		Forecast: a.forecast, Make: a.make, Rest: m.speed.Finish(load),
	}
	if !w.Due.IsZero() {
		about.Due = w.Due.Sub(now).Seconds()
	}
	if !a.begun.IsZero() {
		about.Begun = now.Sub(a.begun).Seconds()
	}
	switch about.Choose(other.speed.Finish(f.load(other, w.count, now))) {
	case pick.Leave:
	case pick.Move:
		f.effort.Moves++
		w.left = m
		a.cancel()
	case pick.Hedge:
		if f.hedges.Take() && f.send(w, other.session, now) {
			f.effort.Hedges++
		}
	}
}

// expire gives up an attempt whose deadline is over.
func (f *Fleet) expire(a *asked, now time.Time) {
	f.log.Warn("a node missed a deadline: the batch is fetched elsewhere", "node", a.session.member.node.Addr(), "after", now.Sub(a.sent).Round(time.Millisecond))
	a.expires = time.Time{}
	f.missed(a, now)
	a.cancel()
}

// missed counts a deadline; it is the node's own failure if it had begun.
func (f *Fleet) missed(a *asked, now time.Time) {
	f.effort.Missed++
	a.want.missed++
	a.want.left = a.session.member
	if !a.begun.IsZero() {
		a.session.member.trust.Failed(f.clock(now))
	}
}

// overtaken gives up the attempts of a want that another one was faster than. Where that one was asked later it is a failure.
func (f *Fleet) overtaken(w *Want, by *asked, now time.Time) {
	for _, a := range w.out {
		if a.sent.Before(by.sent) {
			f.effort.HedgesWon++
			a.session.member.trust.Failed(f.clock(now))
		}
	}
	w.cancel()
}

// clock is a time as package pick takes it.
func (f *Fleet) clock(t time.Time) float64 { return t.Sub(f.epoch).Seconds() }

// Effort is what a fleet did to have its batches in time. Counters since Open.
type Effort struct {
	// Batches and Samples delivered, and samples of batches that a node had begun with or made, and that were not used: extra work.
	Batches, Samples, Extra uint64
	// Hedges are second attempts at a batch that a node was slow with; HedgesWon came first.
	Hedges, HedgesWon uint64
	// Moves are wants that were taken from a node before it began; Missed are deadlines that nodes missed.
	Moves, Missed uint64
}

// Effort tells what was done, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Effort() Effort {
	if e := f.efforts.Load(); e != nil {
		return *e
	}
	return Effort{}
}
