package client

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/span"
)

// Trace is what became of one attempt: a want sent to one node.
type Trace struct {
	// Batch numbers the fleet's wants. A batch that was sent twice has two traces.
	Batch uint64
	Node  string
	Sent  time.Time
	// Ended is zero while the attempt is out.
	Ended time.Time
	// Hedge marks an attempt that began while another one for the same batch was out.
	Hedge bool
	State TraceState
}

// TraceState is how an attempt ended.
type TraceState string

// The states of an attempt.
const (
	Out       TraceState = "out"
	Delivered TraceState = "done"
	Cancelled TraceState = "cancelled"
	Failed    TraceState = "failed"
)

// keptTraces is how many of the latest attempts a fleet remembers.
const keptTraces = 64

// traces are the latest attempts. They belong to the fleet's goroutine, but for published.
type traces struct {
	latest    []*Trace // oldest first
	published atomic.Pointer[[]Trace]
}

func (t *traces) addAttempt(batch uint64, node string, now time.Time) *Trace {
	one := &Trace{Batch: batch, Node: node, Sent: now, State: Out}
	for _, other := range t.latest {
		one.Hedge = one.Hedge || other.Batch == batch && other.State == Out
	}
	if len(t.latest) == keptTraces {
		copy(t.latest, t.latest[1:])
		t.latest = t.latest[:keptTraces-1]
	}
	t.latest = append(t.latest, one)
	return one
}

func (t *Trace) end(a *node.Answer, now time.Time) {
	t.Ended = now
	switch {
	case a.Err == nil && a.Failure == nil:
		t.State = Delivered
	case errors.Is(a.Err, node.ErrCancelled):
		t.State = Cancelled
	default:
		t.State = Failed
	}
}

func (t *traces) publish() {
	all := make([]Trace, len(t.latest))
	for i, one := range t.latest {
		all[i] = *one
	}
	t.published.Store(&all)
}

// Span is what is traced of one batch on the trainer's side, from its want until the loop has it. Nil is a batch that is not traced:
// all methods do nothing. They may be called from any goroutine; whoever got one from Fleet.Span calls Taken or Drop.
type Span struct {
	span  trace.Span
	ready atomic.Int64 // nanoseconds since 1970; 0: not yet
}

// Taken ends the span: the loop has the batch, for which it was blocked for so long.
func (s *Span) Taken(wait time.Duration) {
	if s != nil {
		s.span.SetAttributes(span.Wait.Float64(wait.Seconds()), span.Outcome.String(span.Done))
		s.span.End()
	}
}

// Drop ends the span of a batch that the loop does not take: when it was there, or now if it never was.
func (s *Span) Drop() {
	if s == nil {
		return
	}
	s.span.SetAttributes(span.Outcome.String(span.Unused))
	if ready := s.ready.Load(); ready > 0 {
		s.span.End(trace.WithTimestamp(time.Unix(0, ready)))
		return
	}
	s.span.End()
}

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

// beginSpan begins the span of an attempt, if its want is traced, and tells the node of it. Where the process's own pipeline is the only node
// there is nothing to tell of attempts: what it says is the batch's.
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

// positionOf is that of a name's first sample; of a list the first sample's place in the global order.
func positionOf(n *pb.Name) int64 {
	if repeats := n.GetList().GetRepeats(); len(repeats) > 0 {
		return int64(repeats[0])
	}
	return int64(n.GetRange().GetPosition())
}
