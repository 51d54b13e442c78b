package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// The events of a fleet. All of these run on its goroutine.

// joined says that a stream to a node is there.
func (f *Fleet) joined(s *session) {
	m := s.member
	m.session, m.tried, m.leftOut, m.err, m.changed = s, true, false, nil, ""
	m.came, s.answered = true, time.Now()
	f.log.Info("node joined", "node", m.node.Addr(), "workers", s.workers)
	f.publish(s.answered)
	f.opened()
}

// lost says that a node could not be opened, or that its stream ended. All its attempts have been answered.
func (f *Fleet) lost(m *member, err error) {
	was := m.state(time.Time{})
	m.session, m.tried = nil, true
	if err != nil {
		m.err = err
	}
	m.leftOut = refused(err)
	if data := (*DataError)(nil); m.changed != "" && errors.As(err, &data) {
		data.Message += ": " + m.changed
	}
	if f.ctx.Err() != nil {
		return
	}
	quit := m.changed != "" && errors.Is(err, context.Canceled) // by us, and said why
	if now := m.state(time.Time{}); now != was && !quit {
		f.log.Warn("node "+string(now), "node", m.node.Addr(), "err", err)
	}
	f.checkOpen()
}

// noticed takes what a node tells of itself.
func (f *Fleet) noticed(s *session, n *pb.Notice) {
	s.queued = n.Queued
	if n.Draining && !s.draining {
		s.draining = true
		f.log.Info("node draining", "node", s.member.node.Addr())
	}
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
// plan.
func (f *Fleet) checkOpen() {
	if f.info.Load() != nil || f.expects() {
		return
	}
	refused := false
	for _, m := range f.members {
		var plan *PlanError
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

// checkRefused gives up all wants when every node has been left out: waiting would not help.
func (f *Fleet) checkRefused() {
	if len(f.queue) == 0 || len(f.members) == 0 {
		return
	}
	for _, m := range f.members {
		if m.session != nil || !m.leftOut {
			return
		}
	}
	err := f.allErrors()
	for _, w := range f.queue {
		f.finish(w, Result{Err: err})
	}
	f.queue = nil
}

// allErrors is the only node's error, or those of all nodes.
func (f *Fleet) allErrors() error {
	if m := f.members[0]; len(f.members) == 1 && m.node.Addr() == Local {
		return m.err
	} else if len(f.members) == 1 {
		return fmt.Errorf("node %s: %w", m.node.Addr(), m.err)
	}
	return &NodesError{f.nodeErrors()}
}

func (f *Fleet) nodeErrors() []NodeError {
	errs := make([]NodeError, len(f.members))
	for i, m := range f.members {
		errs[i] = NodeError{m.node.Addr(), m.state(time.Now()), m.err}
	}
	return append(errs, f.sourceErrors()...)
}

// submit takes a want in.
func (f *Fleet) submit(w *Want) {
	if len(f.wants) == 0 {
		f.progress = time.Now()
	}
	f.seq++
	w.seq, w.count = f.seq, countOf(w.Name)
	f.wants[w] = struct{}{}
	f.queue = append(f.queue, w)
}

// decide ends a want with an error, at once or when no node can write its memory any more.
func (f *Fleet) decide(w *Want, err error) {
	if _, ok := f.wants[w]; !ok || w.final != nil {
		return
	}
	if w.session == nil {
		f.unqueue(w)
		f.finish(w, Result{Err: err})
		return
	}
	w.final = err
	w.session.stream.Cancel(w.attempt)
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
	delete(f.wants, w)
	w.Done(r)
}

// send gives a want to a node.
func (f *Fleet) send(w *Want, s *session, now time.Time) {
	if len(s.wants) == 0 {
		s.asked = now
	}
	s.wants[w] = struct{}{}
	s.samples += w.count
	w.session, w.sent = s, now
	w.trace = f.traces.sent(w.seq, s.member.node.Addr(), now)
	w.attempt = &Attempt{Name: w.Name, Dst: w.Dst, Grow: w.Grow, Image: w.Image, Due: w.Due, layout: f.info.Load().GetFields()}
	w.attempt.Done = func(a Answer) { f.inbox.post(func() { f.answered(w, s, a) }) }
	s.stream.Send(w.attempt)
}

// answered ends an attempt: the want is done, or it goes back to the queue.
func (f *Fleet) answered(w *Want, s *session, a Answer) {
	now := time.Now()
	delete(s.wants, w)
	s.samples -= w.count
	w.session, w.attempt = nil, nil
	final := w.final
	w.trace.end(&a, now)
	if a.Err == nil && a.Failure == nil {
		f.delivered(w, s, now)
		f.loop.arrived(now.Sub(w.sent), a.Header.GetQueuedSeconds())
		s.member.bytes += uint64(len(a.Data))
	} else if final == nil {
		final = f.blame(w, s, a, now)
	}
	switch {
	case final != nil:
		f.finish(w, Result{Err: final, Node: s.member.node.Addr()})
	case a.Err == nil && a.Failure == nil:
		f.finish(w, Result{Header: a.Header, Data: a.Data, Imaged: a.Imaged, Node: s.member.node.Addr()})
	default:
		f.queue = append(f.queue, w)
	}
}

// delivered learns from a batch how fast the node is.
func (f *Fleet) delivered(w *Want, s *session, now time.Time) {
	m := s.member
	began := w.sent
	if s.answered.After(began) {
		began = s.answered // it made another one until then
	}
	pace := now.Sub(began).Seconds() / float64(max(w.count, 1))
	if m.pace == 0 {
		m.pace = pace
	}
	m.pace += paceWeight * (pace - m.pace)
	s.answered, f.progress = now, now
	m.batches++
	m.samples += uint64(w.count)
	f.batches++
}

// paceWeight is that of the newest batch in a node's pace.
const paceWeight = 0.2

// blame finds out what an attempt without a batch means for its node. It returns an error if no other node would do better.
func (f *Fleet) blame(w *Want, s *session, a Answer, now time.Time) error {
	m := s.member
	var room *RoomError
	var damaged *DamageError
	switch {
	case errors.As(a.Err, &room):
		return a.Err
	case errors.As(a.Err, &damaged):
		m.damaged++
		m.lastUntil = now.Add(lastFor)
		f.log.Warn("a batch arrived damaged and is fetched elsewhere", "node", m.node.Addr(), "times", m.damaged, "what", damaged.What)
		f.charge(w, m, a.Err, now)
	case a.Failure != nil:
		return f.failure(w, s, a.Failure, now)
	}
	return nil // cancelled by us, or the stream is gone
}

// lastFor is how long a node that sent damage gets wants only when no other node takes them.
const lastFor = time.Minute

func (f *Fleet) failure(w *Want, s *session, failure *pb.Failure, now time.Time) error {
	m := s.member
	err := fromFailure(failure, m.node.Addr())
	switch code := codes.Code(failure.Code); {
	case code == codes.DataLoss || code == codes.InvalidArgument:
		return err
	case failure.RetryAfter != nil:
		m.busyUntil = now.Add(min(failure.RetryAfter.AsDuration(), longestBusy))
	case failure.Reason == pb.Reason_REASON_DRAINING:
		s.draining = true
	case failure.Reason == pb.Reason_REASON_DATA_CHANGED:
		if m.changed == "" {
			f.log.Warn("the data changed on a node", "node", m.node.Addr(), "err", err)
		}
		f.charge(w, m, err, now)
		m.changed = failure.Message
		s.quit() // to open it again and see what it has now
	default:
		f.charge(w, m, err, now)
	}
	m.err = err
	return nil
}

// longestBusy bounds what a node can ask for.
const longestBusy = 30 * time.Second

// charge counts a failure that is the node's own.
func (f *Fleet) charge(w *Want, m *member, err error, now time.Time) {
	m.failures++
	m.err = err
	w.failed(m, err, now)
}
