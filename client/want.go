package client

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Want asks a fleet for one batch. It is used once.
type Want struct {
	Name *pb.Name
	// Request says where the batch goes and when it is due. Dst is lent from Fleet.Want to Done; Grow is asked again for every node that is
	// tried, with Spare by two at once. Begun and Traceparent are the fleet's.
	batch.Request
	// Spare, if set, is asked for as much memory again, until it gives some, so that a second node may be asked for a batch that is needed soon
	// while the first one still writes Dst; nil from it: not now. It is lent until Done, too, and Result.Data lies in one of the two. It is called
	// from a goroutine of the fleet and must not block.
	Spare func(bytes int) []byte
	// Span, if set, is Fleet.Span of this fleet: the fleet notes there what becomes of the want.
	Span *Span
	// Done is called exactly once, from a goroutine of the fleet. It must not block. Afterwards nobody writes Dst or what Spare gave.
	Done func(Result)

	// Of the fleet's goroutine.
	count int
	seq   uint64
	out   []*asked // at nodes; none while it waits in the queue
	spare []byte   // of Spare
	final *Result  // decided, but a node may still write memory of it
	tries map[*member]try
	// When the want fails if no other node comes; zero while a node may do it yet.
	failedBy time.Time
	left     *member // that it was taken from last
	broken   *broken // a node says that a sample is
	moves    int
	missed   int // deadlines
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

// try counts how often a node has failed a want by itself, not by trouble on the way.
type try struct {
	failures int       // trouble that may pass counts once
	again    time.Time // not to be asked earlier
	err      error
}

// broken is a node that could not decode a sample of a want, and what it said.
type broken struct {
	member *member
	err    error
}

const (
	maxTries   = pick.MostTries
	retryAfter = time.Second
)

// failed counts a node's failure. One that may pass leaves the node to be asked again, after others.
func (w *Want) failed(m *member, err error, passing bool, now time.Time) {
	n := w.tries[m].failures + 1
	if passing {
		n = min(n, maxTries-1)
	}
	w.tried(m, n, err, now)
}

func (w *Want) tried(m *member, failures int, err error, now time.Time) {
	if w.tries == nil {
		w.tries = map[*member]try{}
	}
	w.tries[m] = try{failures, now.Add(retryAfter), err}
}

// gaveUp counts a node out, which could not decode a sample.
func (w *Want) gaveUp(m *member, err error, now time.Time) {
	w.broken = &broken{m, err}
	w.tried(m, maxTries, err, now)
}

// hopeFor is how long a want that all usable nodes have failed waits for those that are down: one may restart.
const hopeFor = 30 * time.Second

// hopeless returns an error when every usable node has failed the want often enough.
func (w *Want) hopeless(members []*member, now time.Time) error {
	var errs []NodeError
	down := false
	for _, m := range members {
		t := w.tries[m]
		switch {
		case t.failures < maxTries && m.usable():
			return nil
		case t.failures < maxTries && !m.leftOut:
			down = true
		}
		if m.usable() {
			errs = append(errs, NodeError{m.node.Addr(), m.state(time.Time{}), t.err})
		}
	}
	if len(errs) > 0 && w.failedBy.IsZero() {
		w.failedBy = now.Add(hopeFor)
	}
	if len(errs) == 0 || down && now.Before(w.failedBy) {
		return nil
	}
	if w.broken != nil {
		return w.broken.err
	}
	return &NodesError{errs}
}

// sortByDue puts the earliest due first, and what was wanted first among equals.
func sortByDue(queue []*Want) {
	slices.SortFunc(queue, (*Want).compare)
}

func (w *Want) compare(v *Want) int { return cmp.Or(w.Due.Compare(v.Due), cmp.Compare(w.seq, v.seq)) }
