package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// The events of a fleet. All of these run on its goroutine.

// joined says that a stream to a node is there.
func (f *Fleet) joined(s *session) {
	m := s.member
	m.session, m.tried, m.leftOut, m.err, m.changed = s, true, false, nil, ""
	m.came, s.answered = true, time.Now()
	f.inFlight.forgive(m)
	f.roster.relist()
	if !m.chosen { // it was let go meanwhile
		m.leave()
		return
	}
	f.job.log.Info("node joined", "node", m.node.Addr(), "workers", s.workers)
	f.publish(s.answered)
	f.opening.opened()
}

// lost says that a node could not be opened, or that its stream ended. All its attempts have been answered.
func (f *Fleet) lost(m *member, err error) {
	was := m.state(time.Time{})
	m.session, m.proposal, m.scans, m.tried = nil, nil, nil, true
	f.roster.relist()
	if err != nil {
		m.err = err
	}
	m.leftOut = refused(err)
	if data := (*node.DataError)(nil); m.changed != "" && errors.As(err, &data) {
		data.Message = m.changed + ": " + data.Message + f.roster.anew() // the cause goes first
	}
	if f.job.ctx.Err() != nil {
		return
	}
	quit := errors.Is(err, context.Canceled) && (m.changed != "" || !m.chosen) // by us, and said why, or not needed
	if now := m.state(time.Time{}); now != was && !quit {
		f.job.log.Warn("node "+string(now), "node", m.node.Addr(), "err", err)
	}
	f.opening.checkOpen()
}

// anew says what takes data that has changed, where no node has the job's any more.
func (r *roster) anew() string {
	if r.reference() != nil {
		return ""
	}
	return "; a new Loader, or the run started again without a saved state, takes the data as it is now"
}

// relist finds the nodes that have a stream. Of a large fleet they are few, and what is done for each event is done for them alone.
func (r *roster) relist() {
	r.live = r.live[:0]
	for _, m := range r.members {
		if m.session != nil {
			r.live = append(r.live, m)
		}
	}
}

// noticed takes what a node told of itself at a time.
func (f *Fleet) noticed(s *session, n *pb.Notice, now time.Time) {
	s.queued, s.heard = amount(n.Queued), n.Heard
	s.member.speed.Told(n.AheadSeconds, n.SampleSeconds, f.job.clock(now))
	for _, a := range s.wants {
		if slices.Contains(n.Begun, a.attempt.ID) {
			a.begins(now)
		}
	}
	if n.Draining && !s.draining {
		s.draining = true
		f.job.log.Info("node draining", "node", s.member.node.Addr())
	}
}

// amount is a number that a node tells, of seconds as a rule; 0 if it is none.
func amount(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return 0
	}
	return min(x, 1e12)
}

// opened and failed end the wait of Open.
func (o *opening) opened() { o.readied.Do(func() { close(o.ready) }) }

func (o *opening) failed(err error) {
	o.readied.Do(func() {
		o.openErr = err
		close(o.ready)
	})
}

// checkOpen ends the wait of Open when every node has been tried and one or more of them refused for good, or when one refuses the
// plan. Before, it is seen whether the others have settled without the node that failed. Where a node has answered and been found fit, its stream is waited for, unless
// all refuse that for good.
func (o *opening) checkOpen() {
	o.settle(time.Now())
	if o.split != nil || o.roster.expects() || o.job.info.Load() != nil && !o.roster.allLeftOut() {
		return
	}
	refused := false
	for _, m := range o.roster.members {
		var plan *batch.PlanError
		if errors.As(m.err, &plan) {
			o.failed(m.err)
			return
		}
		if !m.tried {
			return
		}
		refused = refused || m.leftOut
	}
	if refused {
		o.failed(o.roster.allErrors())
	}
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

func (r *roster) allLeftOut() bool {
	return len(r.members) > 0 && !slices.ContainsFunc(r.members, func(m *member) bool { return m.session != nil || !m.leftOut })
}

// alone reports whether this process is the only node.
func (r *roster) alone() bool { return len(r.members) == 1 && r.members[0].node.Addr() == node.Local }

// allErrors is the only node's error, or those of all nodes.
func (r *roster) allErrors() error {
	switch m := r.members[0]; {
	case r.alone() && node.AdviceOnBuild(m.err) == "":
		return m.err
	case len(r.members) == 1:
		return fmt.Errorf("node %s: %w%s", m.node.Addr(), m.err, node.AdviceOnBuild(m.err))
	}
	return &NodesError{r.nodeErrors()}
}

func (r *roster) nodeErrors() []NodeError {
	var errs []NodeError
	for _, m := range r.members {
		if state := m.state(time.Now()); state != Unused {
			errs = append(errs, NodeError{m.node.Addr(), state, m.trouble(state)})
		}
	}
	return append(errs, r.sourceErrors()...)
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

// remove takes a want out of those that are not at a node.
func (q *queue) remove(w *Want) {
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

func (fl *inFlight) finish(w *Want, r Result) {
	w.Span.settle(&r)
	delete(fl.queue.all, w)
	w.Done(r)
}

// answered ends an attempt: the want is done, or is left to its other attempt, or goes back to the queue.
func (fl *inFlight) answered(a *asked, answer node.Answer) {
	now, w, s := time.Now(), a.want, a.session
	s.wants, s.samples = without(s.wants, a), s.samples-w.count
	w.out = without(w.out, a)
	a.trace.end(&answer, now)
	used := false
	switch {
	case answer.Err == nil && answer.Failure == nil:
		fl.delivered(a, &answer, now)
		if used = w.final == nil; used {
			w.final = &Result{Header: answer.Header, Data: answer.Data, Imaged: answer.Imaged, Node: s.member.node.Addr()}
			s.member.trust.Delivered(fl.job.clock(now))
			fl.overtaken(w, a, now)
			fl.leaveOutBroken(w, s.member)
		}
	case w.final == nil:
		if err := fl.blame(a, answer, now); err != nil {
			w.final = &Result{Err: err, Node: s.member.node.Addr()}
			w.cancel()
		}
	}
	a.endSpan(&answer, used)
	fl.effort.count(a, &answer, used)
	switch {
	case len(w.out) > 0: // that one's memory is not free yet, or it brings the batch
	case w.final != nil:
		fl.finish(w, *w.final)
	default:
		fl.queue.waiting = append(fl.queue.waiting, w)
	}
}

func without(all []*asked, a *asked) []*asked {
	return slices.DeleteFunc(all, func(b *asked) bool { return a == b })
}

// count takes an attempt's end: what was delivered, and what was made for nothing.
func (e *Effort) count(a *asked, answer *node.Answer, used bool) {
	samples := uint64(a.want.count)
	arrived := answer.Err == nil && answer.Failure == nil
	switch {
	case used:
		e.Batches++
		e.Samples += samples
	case arrived || !a.begun.IsZero():
		e.Extra += samples
	}
}

// delivered learns from a batch how fast the node is.
func (fl *inFlight) delivered(a *asked, answer *node.Answer, now time.Time) {
	s, count := a.session, a.want.count
	m := s.member
	took, queued := now.Sub(a.sent), amount(answer.Header.GetQueuedSeconds())
	m.speed.Arrived(count, a.waited(now).Seconds(), took.Seconds()-queued, fl.job.clock(now))
	fl.took.Add(took.Seconds())
	fl.making.Add(took.Seconds() - queued)
	fl.job.pacing.addArrival(took, queued)
	s.answered, fl.progress = now, now
	m.unfit = 0
	m.batches++
	m.samples += uint64(count)
	m.bytes += uint64(len(answer.Data))
}

// blame finds out what an attempt without a batch means for its node. It returns an error if no other node would do better.
func (fl *inFlight) blame(asked *asked, a node.Answer, now time.Time) error {
	w, m := asked.want, asked.session.member
	var room *node.RoomError
	var damaged *node.DamageError
	switch {
	case errors.As(a.Err, &room):
		return a.Err
	case errors.As(a.Err, &damaged):
		m.damaged++
		fl.job.log.Warn("a batch arrived damaged and is fetched elsewhere", "node", m.node.Addr(), "times", m.damaged, "what", damaged.What)
		fl.charge(w, m, a.Err, true, now)
	case a.Failure != nil:
		return fl.failure(asked, a.Failure, now)
	}
	return nil // cancelled by us, or the stream is gone
}

func (fl *inFlight) failure(a *asked, failure *pb.Failure, now time.Time) error {
	w, s := a.want, a.session
	m := s.member
	err := node.FromFailure(failure, m.node.Addr())
	if other := (*node.RevisionError)(nil); errors.As(err, &other) {
		fl.refusedRevision(a, other)
		return nil
	}
	switch code := codes.Code(failure.Code); {
	case code == codes.DataLoss && w.broken == nil && fl.chooser.elsewhere(w, m, now): // it may be this copy that is damaged
		w.gaveUp(m, err, now)
	case code == codes.DataLoss || code == codes.InvalidArgument:
		return err
	case code == codes.Canceled && a.suspended: // its deadline was over there while nobody here could take the batch
	case code == codes.Canceled: // its deadline was over there first
		fl.missed(a, now)
	case failure.RetryAfter != nil:
		if failure.Reason == pb.Reason_REASON_READ { // its storage does not answer
			fl.warnOf(m, err, now)
		}
		m.busyUntil = now.Add(min(failure.RetryAfter.AsDuration(), longestBusy))
	case failure.Reason == pb.Reason_REASON_DRAINING:
		s.draining = true
	case failure.Reason == pb.Reason_REASON_DATA_CHANGED:
		if m.changed == "" {
			fl.job.log.Warn("the data changed on a node", "node", m.node.Addr(), "err", err)
		}
		fl.charge(w, m, err, false, now)
		m.reopen(failure.Message + "; listed anew")
	case code == codes.Unavailable: // storage, as a rule
		fl.warnOf(m, err, now)
		fl.charge(w, m, err, true, now)
	default:
		fl.charge(w, m, err, false, now)
	}
	m.err = err
	return nil
}

// warnOf logs a node's trouble, now and then.
func (fl *inFlight) warnOf(m *member, err error, now time.Time) {
	if now.Before(m.warned.Add(warnEvery)) {
		return
	}
	m.warned = now
	fl.job.log.Warn("a node cannot make a batch and others are asked, or it again", "node", m.node.Addr(), "err", err)
}

// warnEvery is how often a node's trouble is told of at most.
const warnEvery = 10 * time.Second

// longestBusy bounds what a node can ask for.
const longestBusy = 30 * time.Second

// leaveOutBroken leaves a node out that could not decode a sample of a want which another one has made: its copy is damaged.
func (fl *inFlight) leaveOutBroken(w *Want, by *member) {
	if w.broken == nil || w.broken.member == by {
		return
	}
	m, err := w.broken.member, w.broken.err
	fl.job.log.Warn("a sample does not decode on a node and does on another: the copy is damaged", "node", m.node.Addr(), "other", by.node.Addr(), "err", err)
	m.reopen(err.Error() + "; opened again")
}

// charge counts a failure that is the node's own. What may pass is waited out once batches have come, but not in this
// process, whose user can see to it at once.
func (fl *inFlight) charge(w *Want, m *member, err error, passing bool, now time.Time) {
	m.failures++
	m.err = err
	var damaged *node.DamageError
	if errors.As(err, &damaged) {
		m.trust.Damaged(fl.job.clock(now))
	} else {
		m.trust.Failed(fl.job.clock(now))
	}
	w.failed(m, err, passing && fl.effort.Batches > 0 && !fl.roster.alone(), now)
}
