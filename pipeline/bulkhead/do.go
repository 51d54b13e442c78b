package bulkhead

import (
	"context"
	"time"
)

// Do calls f, which uses the root, in a goroutine of its own, and waits for it. When the deadline is over since f
// began, or since it last called alive, the error is a *HungError; when ctx ends it is that of ctx, as soon as f
// returns and after a second at most. On a sick root f is not called. What f returns after that goes to drop, if that
// is set. Once f was given up it is called again, while the first call may still be stuck, to see whether the root
// answers.
func Do[T any](ctx context.Context, r *Root, op string, f func(alive func()) (T, error), drop func(T)) (T, error) {
	return DoOnce(ctx, r, op, f, drop, func() func() error {
		return func() error {
			v, err := f(func() {})
			if err == nil && drop != nil {
				drop(v)
			}
			return err
		}
	})
}

// DoOnce is Do for an f that cannot be called twice. When it is given up, again tells what to call in its place to see
// whether the root answers what hung; nil, or a call that is nil: the root's folder is looked into. again must not
// block.
func DoOnce[T any](
	ctx context.Context, r *Root, op string, f func(alive func()) (T, error), drop func(T), again func() func() error,
) (T, error) {
	var none T
	d := &doing[T]{over: make(chan *HungError, 1), done: make(chan outcome[T]), again: again}
	c := &Call{Owner: d}
	if err := c.beginOther(ctx, r, op); err != nil {
		return none, err
	}
	left := make(chan struct{})
	defer close(left)
	go func() { // ends with the call, which may never come back
		v, err := f(c.Alive)
		kept, _ := c.End(err)
		if !kept {
			d.dropped(v, err, drop)
			return
		}
		select {
		case d.done <- outcome[T]{v, err}:
		case <-left:
			d.dropped(v, err, drop)
		}
	}()
	select {
	case o := <-d.done:
		return o.value, o.err
	case e := <-d.over:
		return none, e
	case <-ctx.Done():
	}
	return d.interrupted(ctx)
}

// interruptedWait is how long a call whose caller goes is waited for, in case that it ends by itself.
const interruptedWait = time.Second

type outcome[T any] struct {
	value T
	err   error
}

// doing is one Do.
type doing[T any] struct {
	over  chan *HungError
	done  chan outcome[T]
	again func() func() error
}

func (d *doing[T]) interrupted(ctx context.Context) (T, error) {
	var none T
	timeout := time.NewTimer(interruptedWait)
	defer timeout.Stop()
	select {
	case o := <-d.done:
		return o.value, o.err
	case e := <-d.over:
		return none, e
	case <-timeout.C:
		return none, context.Cause(ctx)
	}
}

func (d *doing[T]) dropped(v T, err error, drop func(T)) {
	if err == nil && drop != nil {
		drop(v)
	}
}

// Stuck implements Owner: nobody else waits for the goroutine.
func (d *doing[T]) Stuck() {}

// Unwanted implements Owner: who does not want it has gone.
func (d *doing[T]) Unwanted() bool { return false }

// GaveUp implements Owner.
func (d *doing[T]) GaveUp(e *HungError) { d.over <- e }

// Again implements Owner.
func (d *doing[T]) Again() func() error {
	if d.again == nil {
		return nil
	}
	return d.again()
}

// beginOther is Begin for a call that takes no place of reads, but one of those for calls of Do.
func (c *Call) beginOther(ctx context.Context, r *Root, op string) error {
	if err := r.enterOther(ctx); err != nil {
		return err
	}
	rs := r.roots
	rs.mu.Lock()
	defer rs.mu.Unlock()
	c.root, c.op, c.counted = r, op, true
	c.began.Store(rs.now())
	c.state.Store(running)
	rs.note(c)
	return nil
}

// enterOther takes a place for a call of Do, and waits for one where many call at once: that alone is no sign of
// storage that hangs. The error is a *HungError when the root is sick, or when none is free within the deadline, or
// that of ctx.
func (r *Root) enterOther(ctx context.Context) error {
	if r.sick.Load() {
		return r.refusal()
	}
	select {
	case r.others <- struct{}{}:
		return nil
	default:
	}
	options := &r.roots.options
	timeout, look := time.NewTimer(options.Deadline), time.NewTicker(options.Patience)
	defer timeout.Stop()
	defer look.Stop()
	for !r.sick.Load() {
		select {
		case r.others <- struct{}{}:
			return nil
		case <-look.C:
		case <-timeout.C:
			return &HungError{Root: r.name, Waiting: maxCalls}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.refusal()
}
