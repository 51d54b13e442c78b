package client

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/client/node"
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

func (t *traces) sent(batch uint64, node string, now time.Time) *Trace {
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

// Traces are the latest attempts, oldest first, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Traces() []Trace {
	if t := f.inFlight.traces.published.Load(); t != nil {
		return *t
	}
	return nil
}
