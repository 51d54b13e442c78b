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
	f.forgive(m)
	f.relist()
	if !m.chosen { // it was let go meanwhile
		m.leave()
		return
	}
	f.log.Info("node joined", "node", m.node.Addr(), "workers", s.workers)
	f.publish(s.answered)
	f.opened()
}

// lost says that a node could not be opened, or that its stream ended. All its attempts have been answered.
func (f *Fleet) lost(m *member, err error) {
	was := m.state(time.Time{})
	m.session, m.proposal, m.scans, m.tried = nil, nil, nil, true
	f.relist()
	if err != nil {
		m.err = err
	}
	m.leftOut = refused(err)
	if data := (*node.DataError)(nil); m.changed != "" && errors.As(err, &data) {
		data.Message = m.changed + ": " + data.Message + f.anew() // the cause goes first
	}
	if f.ctx.Err() != nil {
		return
	}
	quit := errors.Is(err, context.Canceled) && (m.changed != "" || !m.chosen) // by us, and said why, or not needed
	if now := m.state(time.Time{}); now != was && !quit {
		f.log.Warn("node "+string(now), "node", m.node.Addr(), "err", err)
	}
	f.checkOpen()
}

// anew says what takes data that has changed, where no node has the job's any more.
func (f *Fleet) anew() string {
	if f.reference() != nil {
		return ""
	}
	return "; a new Loader, or the run started again without a saved state, takes the data as it is now"
}

// relist finds the nodes that have a stream. Of a large fleet they are few, and what is done for each event is done for them alone.
func (f *Fleet) relist() {
	f.live = f.live[:0]
	for _, m := range f.members {
		if m.session != nil {
			f.live = append(f.live, m)
		}
	}
}

// noticed takes what a node told of itself at a time.
func (f *Fleet) noticed(s *session, n *pb.Notice, now time.Time) {
	s.queued, s.heard = amount(n.Queued), n.Heard
	s.member.speed.Told(n.AheadSeconds, n.SampleSeconds, f.clock(now))
	for _, a := range s.wants {
		if slices.Contains(n.Begun, a.attempt.ID) {
			a.begins(now)
		}
	}
	if n.Draining && !s.draining {
		s.draining = true
		f.log.Info("node draining", "node", s.member.node.Addr())
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
func (f *Fleet) opened() { f.readied.Do(func() { close(f.ready) }) }

func (f *Fleet) failed(err error) {
	f.readied.Do(func() {
		f.openErr = err
		close(f.ready)
	})
}

// checkOpen ends the wait of Open when every node has been tried and one or more of them refused for good, or when one refuses the
// plan. Before, it is seen whether the others have settled without the node that failed. Where a node has answered and been found fit, its stream is waited for, unless
// all refuse that for good.
func (f *Fleet) checkOpen() {
	f.settle(time.Now())
	if f.split != nil || f.expects() || f.info.Load() != nil && !f.allLeftOut() {
		return
	}
	refused := false
	for _, m := range f.members {
		var plan *batch.PlanError
		if errors.As(m.err, &plan) {
			f.failed(m.err)
			return
		}
		if !m.tried {
			return
		}
		refused = refused || m.leftOut
	}
	if refused {
		f.failed(f.allErrors())
	}
}

// checkRefused gives up all wants when every node has been left out before the first batch came, or this process itself was: waiting would
// not help. Later on it may: a node has restarted before its data was there, a list of nodes is wrong for a while.
func (f *Fleet) checkRefused() {
	if len(f.queue) == 0 || !f.allLeftOut() || f.effort.Batches > 0 && !f.alone() {
		return
	}
	err := f.allErrors()
	for _, w := range f.queue {
		f.finish(w, Result{Err: err})
	}
	f.queue = nil
}

func (f *Fleet) allLeftOut() bool {
	return len(f.members) > 0 && !slices.ContainsFunc(f.members, func(m *member) bool { return m.session != nil || !m.leftOut })
}

// alone reports whether this process is the only node.
func (f *Fleet) alone() bool { return len(f.members) == 1 && f.members[0].node.Addr() == node.Local }

// allErrors is the only node's error, or those of all nodes.
func (f *Fleet) allErrors() error {
	switch m := f.members[0]; {
	case f.alone() && node.AdviceOnBuild(m.err) == "":
		return m.err
	case len(f.members) == 1:
		return fmt.Errorf("node %s: %w%s", m.node.Addr(), m.err, node.AdviceOnBuild(m.err))
	}
	return &NodesError{f.nodeErrors()}
}

func (f *Fleet) nodeErrors() []NodeError {
	var errs []NodeError
	for _, m := range f.members {
		if state := m.state(time.Now()); state != Unused {
			errs = append(errs, NodeError{m.node.Addr(), state, m.trouble(state)})
		}
	}
	return append(errs, f.sourceErrors()...)
}

// submit takes a want in.
func (f *Fleet) submit(w *Want) {
	if len(f.wants) == 0 {
		f.progress = time.Now()
	}
	f.seq++
	w.seq, w.count = f.seq, node.CountSamples(w.Name)
	f.count = w.count
	f.wants[w] = struct{}{}
	f.queue = append(f.queue, w)
	f.hedges.Earn()
}

// decide ends a want with an error, at once or when no node can write its memory any more.
func (f *Fleet) decide(w *Want, err error) {
	if _, ok := f.wants[w]; !ok || w.final != nil {
		return
	}
	if len(w.out) == 0 {
		f.unqueue(w)
		f.finish(w, Result{Err: err})
		return
	}
	w.final = &Result{Err: err}
	w.cancel()
}

func (f *Fleet) unqueue(w *Want) {
	for i, q := range f.queue {
		if q == w {
			f.queue = append(f.queue[:i], f.queue[i+1:]...)
			return
		}
	}
}

func (f *Fleet) finish(w *Want, r Result) {
	w.Span.settle(&r)
	delete(f.wants, w)
	w.Done(r)
}

// answered ends an attempt: the want is done, or is left to its other attempt, or goes back to the queue.
func (f *Fleet) answered(a *asked, answer node.Answer) {
	now, w, s := time.Now(), a.want, a.session
	s.wants, s.samples = without(s.wants, a), s.samples-w.count
	w.out = without(w.out, a)
	a.trace.end(&answer, now)
	used := false
	switch {
	case answer.Err == nil && answer.Failure == nil:
		f.delivered(a, &answer, now)
		if used = w.final == nil; used {
			w.final = &Result{Header: answer.Header, Data: answer.Data, Imaged: answer.Imaged, Node: s.member.node.Addr()}
			s.member.trust.Delivered(f.clock(now))
			f.overtaken(w, a, now)
			f.leaveOutBroken(w, s.member)
		}
	case w.final == nil:
		if err := f.blame(a, answer, now); err != nil {
			w.final = &Result{Err: err, Node: s.member.node.Addr()}
			w.cancel()
		}
	}
	a.endSpan(&answer, used)
	f.effort.count(a, &answer, used)
	switch {
	case len(w.out) > 0: // that one's memory is not free yet, or it brings the batch
	case w.final != nil:
		f.finish(w, *w.final)
	default:
		f.queue = append(f.queue, w)
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
func (f *Fleet) delivered(a *asked, answer *node.Answer, now time.Time) {
	s, count := a.session, a.want.count
	m := s.member
	took, queued := now.Sub(a.sent), amount(answer.Header.GetQueuedSeconds())
	m.speed.Arrived(count, a.waited(now).Seconds(), took.Seconds()-queued, f.clock(now))
	f.took.Add(took.Seconds())
	f.making.Add(took.Seconds() - queued)
	f.loop.arrived(took, queued)
	s.answered, f.progress = now, now
	m.unfit = 0
	m.batches++
	m.samples += uint64(count)
	m.bytes += uint64(len(answer.Data))
}

// blame finds out what an attempt without a batch means for its node. It returns an error if no other node would do better.
func (f *Fleet) blame(asked *asked, a node.Answer, now time.Time) error {
	w, m := asked.want, asked.session.member
	var room *node.RoomError
	var damaged *node.DamageError
	switch {
	case errors.As(a.Err, &room):
		return a.Err
	case errors.As(a.Err, &damaged):
		m.damaged++
		f.log.Warn("a batch arrived damaged and is fetched elsewhere", "node", m.node.Addr(), "times", m.damaged, "what", damaged.What)
		f.charge(w, m, a.Err, true, now)
	case a.Failure != nil:
		return f.failure(asked, a.Failure, now)
	}
	return nil // cancelled by us, or the stream is gone
}

func (f *Fleet) failure(a *asked, failure *pb.Failure, now time.Time) error {
	w, s := a.want, a.session
	m := s.member
	err := node.FromFailure(failure, m.node.Addr())
	if other := (*node.RevisionError)(nil); errors.As(err, &other) {
		f.refusedRevision(a, other)
		return nil
	}
	switch code := codes.Code(failure.Code); {
	case code == codes.DataLoss && w.broken == nil && f.elsewhere(w, m, now): // it may be this copy that is damaged
		w.gaveUp(m, err, now)
	case code == codes.DataLoss || code == codes.InvalidArgument:
		return err
	case code == codes.Canceled && a.suspended: // its deadline was over there while nobody here could take the batch
	case code == codes.Canceled: // its deadline was over there first
		f.missed(a, now)
	case failure.RetryAfter != nil:
		if failure.Reason == pb.Reason_REASON_READ { // its storage does not answer
			f.warnOf(m, err, now)
		}
		m.busyUntil = now.Add(min(failure.RetryAfter.AsDuration(), longestBusy))
	case failure.Reason == pb.Reason_REASON_DRAINING:
		s.draining = true
	case failure.Reason == pb.Reason_REASON_DATA_CHANGED:
		if m.changed == "" {
			f.log.Warn("the data changed on a node", "node", m.node.Addr(), "err", err)
		}
		f.charge(w, m, err, false, now)
		m.reopen(failure.Message + "; listed anew")
	case code == codes.Unavailable: // storage, as a rule
		f.warnOf(m, err, now)
		f.charge(w, m, err, true, now)
	default:
		f.charge(w, m, err, false, now)
	}
	m.err = err
	return nil
}

// warnOf logs a node's trouble, now and then.
func (f *Fleet) warnOf(m *member, err error, now time.Time) {
	if now.Before(m.warned.Add(warnEvery)) {
		return
	}
	m.warned = now
	f.log.Warn("a node cannot make a batch and others are asked, or it again", "node", m.node.Addr(), "err", err)
}

// warnEvery is how often a node's trouble is told of at most.
const warnEvery = 10 * time.Second

// longestBusy bounds what a node can ask for.
const longestBusy = 30 * time.Second

// leaveOutBroken leaves a node out that could not decode a sample of a want which another one has made: its copy is damaged.
func (f *Fleet) leaveOutBroken(w *Want, by *member) {
	if w.broken == nil || w.broken.member == by {
		return
	}
	m, err := w.broken.member, w.broken.err
	f.log.Warn("a sample does not decode on a node and does on another: the copy is damaged", "node", m.node.Addr(), "other", by.node.Addr(), "err", err)
	m.reopen(err.Error() + "; opened again")
}

// charge counts a failure that is the node's own. What may pass is waited out once batches have come, but not in this
// process, whose user can see to it at once.
func (f *Fleet) charge(w *Want, m *member, err error, passing bool, now time.Time) {
	m.failures++
	m.err = err
	var damaged *node.DamageError
	if errors.As(err, &damaged) {
		m.trust.Damaged(f.clock(now))
	} else {
		m.trust.Failed(f.clock(now))
	}
	w.failed(m, err, passing && f.effort.Batches > 0 && !f.alone(), now)
}
