package client

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/span"
)

// Want asks a fleet for one batch. It is used once.
type Want struct {
	Name *pb.Name
	// Request says where the batch goes and when it is due. Dst is lent from Fleet.Want to Done; Grow is asked again
	// for every node that is tried, with Spare by two at once. Begun and Traceparent are the fleet's.
	batch.Request
	// Spare, if set, is asked for as much memory again, until it gives some, so that a second node may be asked for a
	// batch that is needed soon while the first one still writes Dst; nil from it: not now. It is lent until Done, too,
	// and Result.Data lies in one of the two. It is called from a goroutine of the fleet and must not block.
	Spare func(bytes int) []byte
	// Span, if set, is Fleet.Span of this fleet: the fleet notes there what becomes of the want.
	Span *Span
	// Done is called exactly once, from a goroutine of the fleet. It must not block. Afterwards nobody writes Dst or
	// what Spare gave.
	Done func(Result)

	// Of the fleet's goroutine.
	count        int
	seq          uint64
	attempts     []*attempt // at nodes; none while it waits in the queue
	spare        []byte     // of Spare
	outcome      *Result    // decided, but a node may still write memory of it
	nodeFailures map[*member]nodeFailures
	// When the want fails if no other node comes; zero while a node may do it yet.
	failedBy        time.Time
	lastNode        *member        // that it was taken from last
	decodeFailure   *decodeFailure // a node says that a sample is
	moves           int
	missedDeadlines int // deadlines
}

// Result is what became of a want.
type Result struct {
	// Err is nil, *SampleError, *PlanError, *RoomError, *StallError, *NodesError, ErrCancelled or ErrClosed.
	Err error
	// Header describes the batch, which is Data: Dst or what Spare or Grow gave, cut to size.
	Header *pb.Header
	Data   []byte
	// Imaged tells that images went to Want.Image.
	Imaged bool
	// Node that made it.
	Node string
}

// nodeFailures counts how often a node has failed a want by itself, not by trouble on the way.
type nodeFailures struct {
	count   int       // trouble that may pass counts once
	retryAt time.Time // not to be asked earlier
	err     error
}

// decodeFailure is a node that could not decode a sample of a want, and what it said.
type decodeFailure struct {
	member *member
	err    error
}

const (
	maxTries   = pick.MostTries
	retryAfter = time.Second
)

// countFailure counts a node's failure. One that may pass leaves the node to be asked again, after others.
func (w *Want) countFailure(m *member, err error, passing bool, now time.Time) {
	n := w.nodeFailures[m].count + 1
	if passing {
		n = min(n, maxTries-1)
	}
	w.setFailures(m, n, err, now)
}

func (w *Want) setFailures(m *member, failures int, err error, now time.Time) {
	if w.nodeFailures == nil {
		w.nodeFailures = map[*member]nodeFailures{}
	}
	w.nodeFailures[m] = nodeFailures{failures, now.Add(retryAfter), err}
}

// recordDecodeFailure counts a node out, which could not decode a sample.
func (w *Want) recordDecodeFailure(m *member, err error, now time.Time) {
	w.decodeFailure = &decodeFailure{m, err}
	w.setFailures(m, maxTries, err, now)
}

// downWait is how long a want that all usable nodes have failed waits for those that are down, or listed no more: one may restart, or be listed again.
const downWait = 30 * time.Second

// checkHopeless returns an error when every usable node has failed the want often enough.
func (w *Want) checkHopeless(r *roster, now time.Time) error {
	var errs []NodeError
	down := r.awaitsReturn(now)
	for _, m := range r.members {
		t := w.nodeFailures[m]
		switch {
		case t.count < maxTries && m.isUsable():
			return nil
		case t.count < maxTries && !m.leftOut:
			down = true
		}
		if m.isUsable() {
			errs = append(errs, NodeError{m.node.Addr(), m.stateAt(time.Time{}), t.err})
		}
	}
	if len(errs) > 0 && w.failedBy.IsZero() {
		w.failedBy = now.Add(downWait)
	}
	if len(errs) == 0 || down && now.Before(w.failedBy) {
		return nil
	}
	if w.decodeFailure != nil {
		return w.decodeFailure.err
	}
	return &NodesError{errs}
}

// sortByDue puts the earliest due first, and what was wanted first among equals.
func sortByDue(queue []*Want) {
	slices.SortFunc(queue, (*Want).compareDue)
}

func (w *Want) compareDue(v *Want) int {
	return cmp.Or(w.Due.Compare(v.Due), cmp.Compare(w.seq, v.seq))
}

// attempt is a want that is at a node. It belongs to the fleet's goroutine. A want is at two nodes at most, and each
// writes memory of its own.
type attempt struct {
	want    *Want
	session *session
	request *node.Attempt
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

// markBegun notes that the node works on it.
func (a *attempt) markBegun(now time.Time) {
	if a.begun.IsZero() {
		a.begun = now
	}
}

// workingSeconds is for how many seconds the node has, as far as is known; negative: it has not begun.
func (a *attempt) workingSeconds(now time.Time) float64 {
	if a.begun.IsZero() {
		return -1
	}
	return now.Sub(a.begun).Seconds()
}

// waitTime is for how long the node could have worked on an attempt alone.
func (a *attempt) waitTime(now time.Time) time.Duration {
	if a.session.lastAnswer.After(a.sent) {
		return now.Sub(a.session.lastAnswer) // it made another one until then
	}
	return now.Sub(a.sent)
}

// cancel gives an attempt up. Its answer comes all the same.
func (a *attempt) cancel(why pb.CancelReason) {
	if !a.cancelled {
		a.cancelled, a.request.Reason = true, why
		a.session.lastCancel = time.Now()
		a.session.stream.Cancel(a.request)
	}
}

// hasLent reports whether a node has the want's first memory, or its second.
func (w *Want) hasLent(spare bool) bool {
	for _, a := range w.attempts {
		if a.spare == spare {
			return true
		}
	}
	return false
}

// fitsTwice reports whether there is memory for a second attempt beside the first.
func (w *Want) fitsTwice() bool { return !w.hasLent(false) || w.secondMemory() != nil }

// secondMemory is the memory for a second attempt; nil if there is none.
func (w *Want) secondMemory() []byte {
	if w.Spare == nil || w.hasLent(true) {
		return nil
	}
	if w.spare == nil {
		w.spare = w.Spare(len(w.Dst))
	}
	return w.spare
}

// isAt reports whether a node has the want.
func (w *Want) isAt(m *member) bool {
	for _, a := range w.attempts {
		if a.session.member == m {
			return true
		}
	}
	return false
}

// cancelAttempts gives up whatever is out.
func (w *Want) cancelAttempts() {
	for _, a := range w.attempts {
		a.cancel(pb.CancelReason_CANCEL_REASON_UNSPECIFIED)
	}
}

// dueIn is in how many seconds the batch is needed; negative: it is late.
func (w *Want) dueIn(now time.Time) float64 {
	if w.Due.IsZero() {
		return math.Inf(-1)
	}
	return w.Due.Sub(now).Seconds()
}

// isAbandoned reports whether the want was taken from the node that had it, and none has it since.
func (w *Want) isAbandoned() bool {
	return w.lastNode != nil && w.outcome == nil && (len(w.attempts) == 0 || len(w.attempts) == 1 && w.attempts[0].cancelled)
}

// excludeNode counts a node out that does not make the want in the job's way.
func (w *Want) excludeNode(m *member, err *node.RevisionError) {
	if w.nodeFailures == nil {
		w.nodeFailures = map[*member]nodeFailures{}
	}
	w.nodeFailures[m] = nodeFailures{count: maxTries, err: err}
}

// queue are the wants of a fleet. It belongs to the fleet's goroutine.
type queue struct {
	all     map[*Want]struct{}
	waiting []*Want // not at a node
	seq     uint64
}

func newQueue() *queue { return &queue{all: map[*Want]struct{}{}} }

// removeWaiting takes a want out of those that are not at a node.
func (q *queue) removeWaiting(w *Want) {
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// firstDue are the wants at one node that are needed first, in that order.
func (q *queue) firstDue() []*Want {
	var all []*Want
	for w := range q.all {
		if w.outcome == nil && len(w.attempts) == 1 && !w.attempts[0].cancelled {
			all = append(all, w)
		}
	}
	sortByDue(all)
	return all[:min(len(all), rescueCandidates)]
}

// hasAbandoned reports whether a want that was taken from a node has no other one yet. Until it has, no full node is
// counted on for a further one.
func (q *queue) hasAbandoned() bool {
	for w := range q.all {
		if w.isAbandoned() {
			return true
		}
	}
	return false
}

const (
	rescueCandidates = 16 // wants, of which it is looked whether they come in time
	maxRescues       = 2  // of them at a time
)

// endSpan tells how the attempt ended.
func (a *attempt) endSpan(answer *node.Answer, used bool) {
	if a.span == nil {
		return
	}
	outcome := string(a.trace.State)
	switch {
	case a.trace.State == Delivered && !used:
		outcome = span.Unused
	case a.trace.State == Cancelled:
		a.span.SetAttributes(span.Reason.String(enumWord(a.request.Reason.String(), "CANCEL_REASON_")))
	case answer.Failure != nil:
		a.span.SetStatus(codes.Error, span.Text(answer.Failure.Message))
		a.span.SetAttributes(span.Reason.String(enumWord(answer.Failure.Reason.String(), "REASON_")))
	case answer.Err != nil:
		a.span.SetStatus(codes.Error, span.Text(answer.Err.Error()))
	}
	a.span.SetAttributes(append(costOf(answer.Header), span.Outcome.String(outcome))...)
	a.span.End(trace.WithTimestamp(a.trace.Ended))
}

// costOf is what a node says that a batch took it; nothing of one that is not there.
func costOf(h *pb.Header) []attribute.KeyValue {
	if h == nil {
		return nil
	}
	return []attribute.KeyValue{span.Queued.Float64(plausibleAmount(h.QueuedSeconds)), span.CoreSeconds.Float64(plausibleAmount(h.CoreSeconds))}
}

// enumWord is the name of a value of an enum without what all of them begin with.
func enumWord(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// recordResult notes the want's result, which ends the span unless it is a batch.
func (s *Span) recordResult(r *Result) {
	switch {
	case s == nil:
	case r.Err == nil:
		now := time.Now()
		s.ready.Store(now.UnixNano())
		s.span.SetAttributes(span.Node.String(r.Node))
		s.span.AddEvent(span.Ready, trace.WithTimestamp(now))
	case errors.Is(r.Err, node.ErrCancelled) || errors.Is(r.Err, ErrClosed):
		s.Drop()
	default:
		s.span.SetAttributes(span.Outcome.String(span.Failed))
		s.span.SetStatus(codes.Error, span.Text(r.Err.Error()))
		s.span.End()
	}
}
