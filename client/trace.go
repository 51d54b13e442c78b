package client

import (
	"errors"
	"sync/atomic"
	"time"

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

// Span is what is traced of one batch on the trainer's side, from its want until the loop has it. Nil is a batch that
// is not traced: all methods do nothing. They may be called from any goroutine; whoever got one from Fleet.Span calls
// Taken or Drop.
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

// positionOf is that of a name's first sample; of a list the first sample's place in the global order.
func positionOf(n *pb.Name) int64 {
	if repeats := n.GetList().GetRepeats(); len(repeats) > 0 {
		return int64(repeats[0])
	}
	return int64(n.GetRange().GetPosition())
}
