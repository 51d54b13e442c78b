package control_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/control/pick"
)

// assign gives wants to the nodes that will have them soonest.
func (r *rank) assign() {
	r.probe()
	r.rescue()
	if len(r.queue) == 0 || !r.hasRoom() {
		return
	}
	r.measure()
	r.weigh()
	slices.SortFunc(r.queue, (*want).compare)
	waiting := r.queue[:0]
	for i, w := range r.queue {
		s := r.pick(w)
		if s != nil && s.takes() {
			r.ask(w, s)
			if !r.hasRoom() {
				waiting = append(waiting, r.queue[i+1:]...)
				break
			}
			continue
		}
		if s != nil {
			s.hand.AddPlanned(crowdBatch)
		}
		waiting = append(waiting, w)
	}
	r.queue = waiting
}

func (w *want) compare(v *want) int {
	return cmp.Or(cmp.Compare(w.due, v.due), cmp.Compare(w.seq, v.seq))
}

// takes reports whether a node may get one more want.
func (s *stream) takes() bool { return s.room() > 0 }

// room is how many more wants a node may get.
func (s *stream) room() int { return pick.InFlight(1, crowdBatch) - len(s.wants) }

func (r *rank) hasRoom() bool {
	return slices.ContainsFunc(r.live, func(s *stream) bool { return !s.leaving && s.takes() })
}

// measure takes what a sample costs, as the nodes' median.
func (r *rank) measure() {
	costs := make([]float64, 0, 64)
	for _, s := range r.live {
		costs = append(costs, s.speed.SampleSeconds())
	}
	r.cost = pick.SampleCost(costs)
}

// takes is what a sample takes the nodes, as they say, their median.
func (r *rank) takes() float64 {
	alone := make([]float64, 0, 64)
	for _, s := range r.live {
		alone = append(alone, s.speed.UnloadedSeconds())
	}
	return pick.SampleCost(alone)
}

func (r *rank) weigh() {
	for _, s := range r.live {
		s.hand.Reset(r.load(s, 0))
	}
}

// load is what a node has in hand.
func (r *rank) load(s *stream, count int) pick.Load {
	l := pick.Load{Held: crowdBatch * len(s.wants), Count: count, Usual: r.cost, Now: r.crowd.now}
	for i, a := range s.wants {
		if i == 0 {
			l.Waited = a.waited() / crowdBatch
		}
		if !s.heardOf(a) {
			l.Unheard += crowdBatch
		}
	}
	return l
}

// waited is for how long the node could have worked on it alone.
func (a *attempt) waited() float64 {
	return a.stream.rank.crowd.now - math.Max(a.sent, a.stream.answered)
}

// heardOf reports whether the node had heard of an attempt when it spoke last.
func (s *stream) heardOf(a *attempt) bool { return a.id <= s.heard }

// candidate is the i-th node as package pick sees it, without Finish.
func (w *want) candidate(i int, s *stream) pick.Candidate {
	return pick.Candidate{
		Node: i, Left: w.left == s, Doubted: s.trust.IsDoubted(), Helps: s.trust.MayHelp(),
		Room: s.room(), Score: s.member.score,
	}
}

// pick is the node for a want; nil: none may be asked.
func (r *rank) pick(w *want) *stream {
	law := pick.NewAssignment(w.seq)
	for i, s := range r.live {
		if w.mayGo(s) {
			c := w.candidate(i, s)
			c.Finish = s.speed.FinishSeconds(s.hand.LoadWith(crowdBatch))
			law.Consider(&c)
		}
	}
	if i, found := law.Node(w.due - r.crowd.now); found {
		return r.live[i]
	}
	return nil
}

// mayGo reports whether a node may be asked for a want that does not have it yet.
func (w *want) mayGo(s *stream) bool { return !s.leaving && !w.isAt(s) }

// rescue gives wants that were taken from a node to others, full ones too.
func (r *rank) rescue() {
	if !slices.ContainsFunc(r.queue, (*want).taken) {
		return
	}
	slices.SortFunc(r.queue, (*want).compare)
	r.queue = slices.DeleteFunc(r.queue, func(w *want) bool {
		if !w.taken() {
			return false
		}
		other, _ := r.rescuer(w, false)
		if other != nil {
			r.ask(w, other)
		}
		return other != nil
	})
}

func (w *want) taken() bool {
	return w.left != nil && !w.arrived && (len(w.out) == 0 || len(w.out) == 1 && w.out[0].cancelled)
}

// rescuer is the node that would have a want soonest that is needed next, and in how many seconds; nil: there is none.
func (r *rank) rescuer(w *want, begun bool) (s *stream, finish float64) {
	law := pick.NewRescue(w.seq, w.due-r.crowd.now, begun)
	for i, s := range r.live {
		if !w.mayGo(s) {
			continue
		}
		if c := w.candidate(i, s); law.Admits(&c) {
			c.Finish = s.speed.FinishSeconds(r.loadBefore(s, w))
			law.Consider(&c)
		}
	}
	i, finish, found := law.Node()
	if !found {
		return nil, finish
	}
	return r.live[i], finish
}

func (w *want) isAt(s *stream) bool {
	return slices.ContainsFunc(w.out, func(a *attempt) bool { return a.stream == s })
}

// loadBefore is what a node makes before a want, and it.
func (r *rank) loadBefore(s *stream, w *want) pick.Load {
	l := r.load(s, crowdBatch)
	for _, a := range s.wants {
		if a.begun >= 0 || w.compare(a.want) >= 0 {
			continue
		}
		l.OvertakeBatch(crowdBatch, s.heardOf(a))
	}
	return l
}

// ask sends a want to a node.
func (r *rank) ask(w *want, s *stream) {
	now := r.crowd.now
	if len(s.wants) == 0 {
		s.asked = now
	}
	s.next++
	a := &attempt{want: w, stream: s, id: s.next, sent: now, begun: -1, begins: -1, make: s.speed.MakeSeconds(crowdBatch), left: crowdBatch}
	a.forecast = s.speed.FinishSeconds(r.load(s, crowdBatch))
	a.expires = now + pick.Deadline(&r.took, w.missed)
	s.wants = append(s.wants, a)
	if len(w.out) == 0 {
		r.out = append(r.out, w)
	}
	w.out = append(w.out, a)
	s.hand.SetLoad(r.load(s, 0))
	due := w.due
	r.crowd.send(func() { s.node.take(a, due) })
}

func without(all []*attempt, a *attempt) []*attempt {
	return slices.DeleteFunc(all, func(b *attempt) bool { return a == b })
}

// answered ends an attempt, with a batch or without.
func (r *rank) answered(a *attempt, made bool) {
	w, s, now := a.want, a.stream, r.crowd.now
	if !slices.Contains(s.wants, a) { // the stream was closed meanwhile
		return
	}
	s.wants, w.out = without(s.wants, a), without(w.out, a)
	arrives := made && !w.arrived
	if made {
		took, queued := now-a.sent, a.begins-a.came
		s.speed.RecordArrival(crowdBatch, now-math.Max(a.sent, s.answered), took-queued, now)
		r.took.Add(took)
		r.window.AddArrival(took - queued)
		s.answered, r.progress = now, now
	}
	if arrives {
		r.batches++
		s.trust.RecordDelivery(now)
		r.overtaken(w, a)
	} else if made || a.begun >= 0 {
		r.extra += crowdBatch
	}
	if len(w.out) == 0 {
		r.out = slices.DeleteFunc(r.out, func(o *want) bool { return o == w })
		if !w.arrived && !arrives {
			r.queue = append(r.queue, w)
		}
	}
	if arrives {
		r.came(w)
	}
	r.assign()
}

// overtaken gives up the other attempt at a want.
func (r *rank) overtaken(w *want, by *attempt) {
	for _, a := range w.out {
		if a.sent < by.sent {
			a.stream.trust.RecordFailure(r.crowd.now)
		}
		r.takeAway(a)
	}
}

func (r *rank) takeAway(a *attempt) {
	a.stream.speed.RecordWait(crowdBatch, a.waited(), r.crowd.now)
	if !a.cancelled {
		a.cancelled = true
		r.crowd.send(func() { a.stream.node.drop(a) })
	}
}

// tend moves and hedges wants that are needed next.
func (r *rank) tend() {
	r.weigh()
	next := make([]*want, 0, len(r.out))
	for _, w := range r.out {
		if !w.arrived && len(w.out) == 1 && !w.out[0].cancelled {
			next = append(next, w)
		}
	}
	slices.SortFunc(next, (*want).compare)
	left := crowdHastens
	for _, w := range next[:min(len(next), crowdLooks)] {
		if left > 0 && r.hasten(w.out[0]) {
			left--
		}
	}
	for _, s := range r.live {
		for _, a := range s.wants {
			if r.crowd.now >= a.expires && !a.cancelled && len(r.live) > 1 {
				a.want.missed++
				a.want.left = s
				if a.begun >= 0 {
					s.trust.RecordFailure(r.crowd.now)
				}
				r.takeAway(a)
			}
		}
	}
}

// hasten asks another node for a batch, if that brings it sooner.
func (r *rank) hasten(a *attempt) bool {
	w, now := a.want, r.crowd.now
	at := r.about(a)
	other, finish := r.rescuer(w, at.Begun >= 0)
	if other == nil {
		return false
	}
	switch at.Choose(finish) {
	case pick.Move:
		if !other.takes() && (slices.ContainsFunc(r.queue, (*want).taken) || slices.ContainsFunc(r.out, (*want).taken)) {
			return false
		}
		r.moves++
		w.moves++
		w.left = a.stream
		r.takeAway(a)
		return true
	case pick.Hedge:
		stuck := now-r.progress >= 1 && now-r.granted >= 1
		if !r.hedges.TakeHedge() {
			if !stuck {
				return false
			}
			r.granted = now
		}
		r.hedged++
		r.ask(w, other)
		return true
	}
	return false
}

// about is an attempt as package pick sees it.
func (r *rank) about(a *attempt) pick.Attempt {
	now := r.crowd.now
	l := r.loadBefore(a.stream, a.want)
	l.RemoveBatch(crowdBatch, a.stream.heardOf(a))
	l.Count = 0
	p := pick.Attempt{
		Due: a.want.due - now, Age: now - a.sent, Begun: -1, Forecast: a.forecast, Make: cmp.Or(a.make, r.took.Value()),
		Rest: a.stream.speed.FinishSeconds(l), Takes: crowdBatch * a.stream.speed.SampleSeconds(), Moves: a.want.moves,
	}
	if a.begun >= 0 {
		p.Begun = now - a.begun
	}
	return p
}

// probe gives nodes that are doubted a want now and then, the one that is needed last.
func (r *rank) probe() {
	for _, s := range r.live {
		if len(s.wants) > 0 || len(r.queue) == 0 || s.leaving {
			continue
		}
		w := slices.MaxFunc(r.queue, (*want).compare)
		due := w.due - r.crowd.now
		if due > 0 && due < s.speed.FinishSeconds(r.load(s, crowdBatch)) || !s.trust.TakeProbe(r.crowd.now) {
			continue
		}
		r.queue = slices.DeleteFunc(r.queue, func(o *want) bool { return o == w })
		r.ask(w, s)
	}
}
