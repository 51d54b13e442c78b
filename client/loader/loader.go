// Package loader delivers one rank's epochs in order, from a fleet of nodes, and keeps the cursor by which a run goes
// on elsewhere.
package loader

import (
	"context"
	"fmt"
	"iter"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/order"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/span"
)

// Options of a Loader.
type Options struct {
	client.Options
	// Batch is the size of this rank's full batches.
	Batch int
	// Rank of Ranks that share every step. Ranks 0: 1.
	Rank, Ranks int
	// Tail says what becomes of the last step of an epoch; empty: order.Short.
	Tail order.Tail
	// Steps per epoch; 0: as many as the samples give.
	Steps uint64
	// Epochs is how many there will be; 0: no end. Batches of the next epoch are wanted before this one ends.
	Epochs uint32
	// Window is how many batches are wanted or ready at once; 0: what the loop's pace and the nodes ask for; see
	// Fleet.Window.
	Window int
	// WindowBytes bounds the memory of batches that are wanted or ready where Window is 0. 0: 1 GiB.
	WindowBytes int
	// Idle, if set, tells how long the accelerator stood still for data in the turn of the loop that ends, when the
	// next batch is about to be returned. Nil, or a negative time: unknown, and the wait counts instead.
	Idle func() time.Duration
}

// Loader delivers the batches of one rank in order. It is used by one goroutine at a time. All its memory is slots that
// go round: a batch holds one from the moment it is wanted until its Release.
type Loader struct {
	options Options
	fleet   *client.Fleet
	info    *pb.OpenResponse
	epoch   order.Epoch
	slots   slots

	cursor  cursor // of the next batch to deliver
	ahead   cursor // of the next batch to want
	pending []*pending
	restore *State
	steps   steps
	parent  trace.SpanContext // of batches' spans
}

// cursor is a place in the run: an epoch, and how many of its positions all ranks together have consumed.
type cursor struct {
	epoch    uint32
	consumed uint64
}

// pending is a batch that was wanted and not delivered.
type pending struct {
	want   client.Want
	spare  []byte // a second node may write it
	share  order.Share
	epoch  uint32
	result chan client.Result
}

// New returns a Loader that does nothing until Open or Batches.
func New(o Options) (*Loader, error) {
	if o.Ranks == 0 {
		o.Ranks = 1
	}
	if o.Rank < 0 || o.Rank >= o.Ranks {
		return nil, fmt.Errorf("rank %d of %d", o.Rank, o.Ranks)
	}
	e := order.Epoch{Samples: 1, Ranks: o.Ranks, Batch: o.Batch, Tail: o.Tail, Steps: o.Steps}
	if err := e.Check(); err != nil {
		return nil, err
	}
	return &Loader{options: o, epoch: e}, nil
}

// Open opens the plan at the nodes, unless that is done; see Fleet.Open. Batches does it by itself.
func (l *Loader) Open(ctx context.Context) (*pb.OpenResponse, error) {
	if l.info != nil {
		return l.info, nil
	}
	if l.fleet == nil {
		o := l.options.Options
		o.Rank = l.options.Rank
		if s := l.restore; s != nil {
			o.Numerics, o.Fingerprint, o.Revisions = s.Numerics, s.Fingerprint, s.Revisions.Message()
			o.Stores = s.Stores
		}
		f, err := client.New(o)
		if err != nil {
			return nil, err
		}
		l.fleet = f
	}
	info, err := l.fleet.Open(ctx)
	if err != nil {
		return nil, err
	}
	l.epoch.Samples = info.Samples
	if err := l.epoch.Check(); err != nil {
		return nil, err
	}
	if l.restore != nil {
		if err := l.restore.check(info, l.fleet.Trainer()); err != nil {
			return nil, err
		}
	}
	l.info = info
	return info, nil
}

// Fleet is the Loader's fleet, nil before Open.
func (l *Loader) Fleet() *client.Fleet { return l.fleet }

// Steps is the number of batches in an epoch; 0 before Open.
func (l *Loader) Steps() uint64 {
	if l.info == nil {
		return 0
	}
	return l.epoch.StepCount()
}

// Batches delivers the rest of the current epoch, or the next epoch if none of it is left. Every batch has to be
// released. After an error, or when the loop was left early, the next call goes on behind the last batch that was
// delivered.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		l.steps.rest()
		l.parent = span.Parent(ctx)
		if _, err := l.Open(ctx); err != nil {
			yield(nil, err)
			return
		}
		if l.cursor.consumed > 0 {
			l.endEpoch()
		}
		if l.epoch.StepsLeft(l.cursor.consumed) == 0 {
			yield(nil, fmt.Errorf("%d samples make no step of %d ranks with batches of %d", l.epoch.Samples, l.epoch.Ranks, l.epoch.Batch))
			return
		}
		for l.epoch.StepsLeft(l.cursor.consumed) > 0 {
			b, err := l.next(ctx)
			if !yield(b, err) || err != nil {
				return
			}
		}
		l.endEpoch()
	}
}

// endEpoch begins the next epoch if nothing is left of this one.
func (l *Loader) endEpoch() {
	if l.epoch.StepsLeft(l.cursor.consumed) == 0 {
		l.cursor = cursor{epoch: l.cursor.epoch + 1}
	}
}

// next waits for the batch at the cursor and moves the cursor.
func (l *Loader) next(ctx context.Context) (*Batch, error) {
	l.fill()
	p := l.pending[0]
	r, wait, err := l.await(ctx, p)
	if err != nil {
		return nil, err
	}
	l.pending = l.pending[1:]
	if r.Err != nil {
		l.slots.put(p.want.Dst)
		l.slots.put(p.spare)
		l.reset()
		return nil, r.Err
	}
	b := newBatch(p, r, &l.slots)
	p.want.Span.Taken(wait)
	p.settle(r.Data, &l.slots)
	l.cursor.consumed = p.share.Next
	l.stepped(p, wait)
	return b, nil
}

// fill wants batches up to the window.
func (l *Loader) fill() {
	window := l.window()
	if len(l.pending) == 0 {
		l.ahead = l.cursor
	}
	for len(l.pending) < window {
		share, ok := l.epoch.Step(l.ahead.consumed, l.options.Rank)
		if !ok {
			if n := l.options.Epochs; n > 0 && l.ahead.epoch+1 >= n {
				return
			}
			l.ahead = cursor{epoch: l.ahead.epoch + 1}
			continue
		}
		l.want(share)
		l.ahead.consumed = share.Next
	}
}

func (l *Loader) want(share order.Share) {
	p := &pending{share: share, epoch: l.ahead.epoch, result: make(chan client.Result, 1)}
	name := &pb.Range{Position: share.Position, Count: uint32(share.Count)}
	p.want = client.Want{
		Name: &pb.Name{Epoch: p.epoch, Samples: &pb.Name_Range{Range: name}},
		Request: batch.Request{
			Dst:  l.slots.get(node.BatchBytes(l.info.Fields, share.Count)),
			Grow: func(n int) []byte { return make([]byte, n) },
		},
		Spare: func(n int) []byte {
			p.spare = l.slots.get(n)
			return p.spare
		},
		Done: func(r client.Result) { p.result <- r },
	}
	var last time.Time
	if n := len(l.pending); n > 0 {
		last = l.pending[n-1].want.Due
	}
	p.want.Due = l.fleet.DueAfter(last, len(l.pending))
	if l.options.Ranks > 1 {
		p.want.Step = l.number(p)
	}
	p.want.Span = l.fleet.Span(p.want.Name, l.options.Rank, l.parent)
	l.pending = append(l.pending, p)
	l.fleet.Want(&p.want)
}

// settle gives back the memory that the batch did not arrive in. Where it grew the smaller memory is forgotten, so that
// there is no more with each turn.
func (p *pending) settle(data []byte, s *slots) {
	switch {
	case p.spare == nil:
	case same(data, p.spare):
		s.put(p.want.Dst)
	case same(data, p.want.Dst):
		s.put(p.spare)
	}
}

func same(a, b []byte) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// reset gives up what is pending, so that wants begin again at the cursor.
func (l *Loader) reset() {
	for _, p := range l.pending {
		l.fleet.Cancel(&p.want)
	}
	for _, p := range l.pending {
		<-p.result
		p.want.Span.Drop()
		l.slots.put(p.want.Dst)
		l.slots.put(p.spare)
	}
	l.pending = nil
}

// Close gives up what is pending and returns when nothing of the Loader runs any more. Batches that were delivered stay
// valid until their Release.
func (l *Loader) Close() {
	if l.fleet != nil {
		l.fleet.Close()
		l.reset()
	}
}

// FreeSlots is how many batches' memory the Loader holds that no batch is in.
func (l *Loader) FreeSlots() int { return l.slots.count() }

// Lent is the number of batches that were delivered and not released.
func (l *Loader) Lent() int { return int(l.slots.lent.Load()) }
