package bulkhead

import (
	"fmt"
	"sync/atomic"
	"time"
)

// HungError says that storage does not answer.
type HungError struct {
	// Root is the name of what does not answer.
	Root string
	// Op is the call that was given up, as "read", Key what it was about, where that is known; After how long it had
	// taken.
	Op, Key string
	After   time.Duration
	// Since is when the root was found sick, for a call that was not tried; else the zero time.
	Since time.Time
	// Waiting is how many calls wait for the root, for one that was not tried since there are as many as may be; else
	// 0.
	Waiting int
	// Cause is why the root did not answer when the call was given up, as Explain says; nil: nobody knows.
	Cause error
}

// Unwrap is the cause.
func (e *HungError) Unwrap() error { return e.Cause }

// Error tells which root, how that was found out, and why.
func (e *HungError) Error() string {
	if e.Cause != nil {
		return e.found() + ": " + e.Cause.Error()
	}
	return e.found()
}

// found tells which root, and how that was found out.
func (e *HungError) found() string {
	what := e.Op
	if e.Key != "" {
		what += " " + e.Key
	}
	switch {
	case e.Waiting > 0:
		return fmt.Sprintf("the storage of %s does not answer: %d calls wait for it", e.Root, e.Waiting)
	case e.Since.IsZero():
		return fmt.Sprintf("the storage of %s does not answer: %s was given up after %s", e.Root, what, e.After.Round(time.Millisecond))
	}
	return fmt.Sprintf("the storage of %s does not answer since %s: %s was given up then", e.Root, e.Since.UTC().Format(time.RFC3339), what)
}

// Owner is who makes calls.
type Owner interface {
	// Stuck tells that the call takes long, and that the owner may replace the goroutine that waits for it.
	Stuck()
	// Unwanted reports whether nobody waits for a stuck call any more, which is then given up before its deadline. It
	// must not block.
	Unwanted() bool
	// GaveUp tells that the deadline of the call is over; nil: it was unwanted. From now on its goroutine owns nothing
	// but what the call itself uses: when the call comes back, End says so. Places that it was made in are left here:
	// the call keeps one by itself.
	GaveUp(*HungError)
	// Again is asked, while the goroutine is still in the call, for the same call once more, with memory of its own, to
	// see whether the root answers what hung. What it returns is called while the first call may still be stuck. Nil:
	// the root's folder is looked into instead. It must not block, nor call what is here.
	Again() func() error
}

const (
	idle = iota
	running
	givenUp
)

// Call notes one call after the other of one goroutine. It is not to be copied.
type Call struct {
	// Owner is told of what becomes of calls. Nil: nobody is.
	Owner Owner
	// Surplus says that the goroutine was replaced before: it is not again.
	Surplus bool

	root  *Root
	op    string
	key   []byte
	began atomic.Int64
	state atomic.Int32
	// Guarded by roots.mu.
	stuck, replaced, counted bool
	unwanted                 bool // it was given up since nobody waits for it; the root may be well
	lost                     bool // it was given up and keeps a place of its root
	writtenOff               bool // it was given up, and its root has come back without it
}

// Begin notes that a call begins. On a sick root the error is a *HungError, and there is nothing to End. key is copied.
func (c *Call) Begin(r *Root, op string, key []byte) error {
	if r.sick.Load() {
		return r.refusal()
	}
	rs := r.roots
	c.root, c.op, c.key = r, op, append(c.key[:0], key...)
	c.began.Store(rs.now())
	c.state.Store(running)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.note(c)
	return nil
}

// note adds a call. mu is held.
func (rs *Roots) note(c *Call) {
	rs.calls[c] = struct{}{}
	rs.watch()
}

// Alive tells that a call that consists of several goes on: its deadline begins anew. It may be called by many
// goroutines.
func (c *Call) Alive() { c.began.Store(c.root.roots.now()) }

// End notes that the call came back. kept is false if it was given up meanwhile: nothing but what the call used is the
// goroutine's any more. replaced tells that the owner was told of a stuck call: there is one goroutine more than there
// was.
func (c *Call) End(err error) (kept, replaced bool) {
	r := c.root
	rs := r.roots
	rs.mu.Lock()
	kept = c.state.CompareAndSwap(running, idle)
	delete(rs.calls, c)
	replaced = c.replaced
	lost := c.lost
	c.leave()
	if c.writtenOff {
		rs.writtenOff--
	}
	c.stuck, c.replaced, c.unwanted, c.writtenOff = false, false, false, false
	back := !kept && err == nil && r.answer(c) // well, after it was given up
	rs.mu.Unlock()
	if back {
		rs.tell(r)
	}
	if back || lost {
		rs.free()
	}
	return kept, replaced
}

// leave gives back what the call keeps of its root and of all roots. roots.mu is held.
func (c *Call) leave() {
	if c.replaced && !c.writtenOff {
		c.root.roots.replaced--
	}
	if c.counted {
		<-c.root.others
	}
	if c.lost {
		c.root.lost.Add(-1)
	}
	c.counted, c.lost = false, false
}

// maxWrittenOff is how many calls that may never come back keep no place of their root, nor anything else but a thread.
const maxWrittenOff = 1024

// writeOff has the calls that were given up keep nothing of a root that has come back without them: they hang with what
// was unmounted, as a rule. roots.mu is held.
func (r *Root) writeOff() {
	for c := range r.roots.calls {
		if c.root == r && c.state.Load() == givenUp && !c.writtenOff && r.roots.writtenOff < maxWrittenOff {
			c.leave()
			c.writtenOff = true
			r.roots.writtenOff++
		}
	}
}

// refusal is the error of a sick root.
func (r *Root) refusal() *HungError {
	r.roots.mu.Lock()
	defer r.roots.mu.Unlock()
	e := HungError{Root: r.name, Op: "a call", Since: r.since}
	if cause := r.cause(); cause != nil {
		e.Op, e.Key, e.After, e.Cause = cause.Op, cause.Key, cause.After, cause.Cause
	}
	if e.Since.IsZero() { // it has recovered just now
		e.Since = time.Now()
	}
	return &e
}

// Full reports whether a root has no place for another read now. A sick one has: reads fail there at once.
func (r *Root) Full() bool {
	return r.places.Load()+r.lost.Load() >= int64(r.roots.options.Places) && !r.sick.Load()
}

// Enter takes a place for a read, beyond Options.Places too: who has to keep to these asks Full before, under a lock of
// his.
func (r *Root) Enter() { r.places.Add(1) }

// Leave gives a place back.
func (r *Root) Leave() {
	if r.places.Add(-1)+r.lost.Load() == int64(r.roots.options.Places)-1 {
		r.roots.free()
	}
}

func (rs *Roots) free() {
	rs.mu.Lock()
	all := rs.freed
	rs.mu.Unlock()
	for _, tell := range all {
		tell()
	}
}

// Sick reports whether the root does not answer.
func (r *Root) Sick() bool { return r.sick.Load() }
