package client

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// handleAnswer ends an attempt: the want is done, or is left to its other attempt, or goes back to the queue.
func (fl *inFlight) handleAnswer(a *attempt, answer node.Answer) {
	now, w, s := time.Now(), a.want, a.session
	s.attempts, s.samples = removeAttempt(s.attempts, a), s.samples-w.count
	w.attempts = removeAttempt(w.attempts, a)
	a.trace.end(&answer, now)
	used := false
	switch {
	case answer.Err == nil && answer.Failure == nil:
		fl.recordDelivery(a, &answer, now)
		if used = w.outcome == nil; used {
			w.outcome = &Result{Header: answer.Header, Data: answer.Data, Imaged: answer.Imaged, Node: s.member.node.Addr()}
			s.member.trust.RecordDelivery(fl.job.clock(now))
			fl.cancelSlower(w, a, now)
			fl.leaveOutBroken(w, s.member)
		}
	case w.outcome == nil:
		if err := fl.handleFailedAttempt(a, answer, now); err != nil {
			w.outcome = &Result{Err: err, Node: s.member.node.Addr()}
			w.cancelAttempts()
		}
	}
	a.endSpan(&answer, used)
	fl.effort.countAttempt(a, &answer, used)
	switch {
	case len(w.attempts) > 0: // that one's memory is not free yet, or it brings the batch
	case w.outcome != nil:
		fl.finishWant(w, *w.outcome)
	default:
		fl.queue.waiting = append(fl.queue.waiting, w)
	}
}

func removeAttempt(all []*attempt, a *attempt) []*attempt {
	return slices.DeleteFunc(all, func(b *attempt) bool { return a == b })
}

// countAttempt counts an attempt that has ended: what was delivered, and what was made for nothing.
func (e *Effort) countAttempt(a *attempt, answer *node.Answer, used bool) {
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

// recordDelivery learns from a batch how fast the node is.
func (fl *inFlight) recordDelivery(a *attempt, answer *node.Answer, now time.Time) {
	s, count := a.session, a.want.count
	m := s.member
	took, queued := now.Sub(a.sent), plausibleAmount(answer.Header.GetQueuedSeconds())
	m.speed.RecordArrival(count, a.waitTime(now).Seconds(), took.Seconds()-queued, fl.job.clock(now))
	fl.totalTimes.Add(took.Seconds())
	fl.makeTimes.Add(took.Seconds() - queued)
	fl.job.pacing.addArrival(took, queued)
	s.lastAnswer, fl.lastProgress = now, now
	m.unfit, s.trouble = 0, ""
	m.batches++
	m.samples += uint64(count)
	m.bytes += uint64(len(answer.Data))
	index := answer.Header.GetIndex()
	m.decoded += uint64(index.GetHits()) + uint64(index.GetCopies()) + uint64(index.GetMisses())
	m.uncopied += uint64(index.GetMissingCopies())
	m.kept += uint64(index.GetKept())
}

// handleFailedAttempt finds out what an attempt without a batch means for its node. It returns an error if no other
// node would do better.
func (fl *inFlight) handleFailedAttempt(a *attempt, answer node.Answer, now time.Time) error {
	w, m := a.want, a.session.member
	var room *node.RoomError
	var damaged *node.DamageError
	switch {
	case errors.As(answer.Err, &room):
		return answer.Err
	case errors.As(answer.Err, &damaged):
		m.damaged++
		fl.job.log.Warn("a batch arrived damaged and is fetched elsewhere", "node", m.node.Addr(), "times", m.damaged, "what", damaged.What)
		fl.countFailure(w, m, answer.Err, true, now)
	case answer.Failure != nil:
		return fl.handleFailure(a, answer.Failure, now)
	}
	return nil // cancelled by us, or the stream is gone
}

func (fl *inFlight) handleFailure(a *attempt, failure *pb.Failure, now time.Time) error {
	w, s := a.want, a.session
	m := s.member
	err := node.FromFailure(failure, m.node.Addr())
	if other := (*node.RevisionError)(nil); errors.As(err, &other) {
		fl.handleRevisionError(a, other)
		return nil
	}
	switch code := codes.Code(failure.Code); {
	case code == codes.DataLoss && w.decodeFailure == nil && fl.chooser.hasAlternative(w, m, now): // it may be this copy that is damaged
		w.recordDecodeFailure(m, err, now)
	case code == codes.DataLoss || code == codes.InvalidArgument:
		return err
	case code == codes.Canceled && a.suspended: // its deadline was over there while nobody here could take the batch
	case code == codes.Canceled: // its deadline was over there first
		fl.countMissedDeadline(a, now)
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
		fl.countFailure(w, m, err, false, now)
		m.reopenStream(failure.Message + "; listed anew")
	case code == codes.Unavailable: // storage, as a rule
		fl.warnOf(m, err, now)
		fl.countFailure(w, m, err, true, now)
	default:
		fl.countFailure(w, m, err, false, now)
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

// leaveOutBroken leaves a node out that could not decode a sample of a want which another one has made: its copy is
// damaged.
func (fl *inFlight) leaveOutBroken(w *Want, by *member) {
	if w.decodeFailure == nil || w.decodeFailure.member == by {
		return
	}
	m, err := w.decodeFailure.member, w.decodeFailure.err
	fl.job.log.Warn("a sample does not decode on a node and does on another: the copy is damaged", "node", m.node.Addr(), "other", by.node.Addr(), "err", err)
	m.listing = "" // a list does not tell whether a copy is damaged
	m.reopenStream(err.Error() + "; opened again")
}

// countFailure counts a failure that is the node's own. What may pass is waited out once batches have come, but not in
// this process, whose user can see to it at once.
func (fl *inFlight) countFailure(w *Want, m *member, err error, passing bool, now time.Time) {
	m.failures++
	m.err = err
	var damaged *node.DamageError
	if errors.As(err, &damaged) {
		m.trust.RecordDamage(fl.job.clock(now))
	} else {
		m.trust.RecordFailure(fl.job.clock(now))
	}
	w.countFailure(m, err, passing && fl.effort.Batches > 0 && !fl.roster.isAlone(), now)
}

// handleRevisionError takes a node's refusal to make a want with another codec than the job's. Others are asked, but
// none that told of the same, and it for other wants.
func (fl *inFlight) handleRevisionError(a *attempt, err *node.RevisionError) {
	w, m := a.want, a.session.member
	w.excludeNode(m, err)
	for _, other := range fl.roster.live {
		if found, told := other.session.codecs[err.Unit]; told && found == err.Found && other != m {
			like := *err
			like.Build = other.session.build
			w.excludeNode(other, &like)
		}
	}
	if m.unfit++; !m.differs[err.Unit] {
		if m.differs == nil {
			m.differs = map[string]bool{}
		}
		m.differs[err.Unit] = true
		fl.roster.connected = fl.roster.connected.Add(-connectEvery) // others may be needed beside it
		fl.job.log.Warn("a node is of another build, and others are asked for batches that take what differs", "node", m.node.Addr(), "err", err)
	}
}

// clearRefusals has a node that was opened anew asked for what it refused: it may be of another build now.
func (fl *inFlight) clearRefusals(m *member) {
	m.unfit, m.differs = 0, nil
	for w := range fl.queue.all {
		var e *node.RevisionError
		if errors.As(w.nodeFailures[m].err, &e) {
			delete(w.nodeFailures, m)
		}
	}
}
