// Package timeout has timers that count time in which this process ran.
//
// A process that was stopped, by a signal, a freezer, a debugger or a machine that slept, finds that its clocks went
// on. What it waited for could not come meanwhile, and whoever should have sent it is not to blame.
package timeout

import (
	"sync"
	"time"
)

const (
	// parts is in how many parts a time is waited for.
	parts = 4
	// late is how much longer than meant a part may take before that is taken for a time in which this process was
	// stopped.
	late = 500 * time.Millisecond
)

// Timer calls a function once, after a time. Its methods are safe for concurrent use.
type Timer struct {
	clock clock
	f     func()

	mu    sync.Mutex
	part  time.Duration
	left  int  // parts until f; 0: it was called, or is not to be
	spare bool // the part before this one did not count
	due   time.Time
	timer stopper // of this part
	round uint64  // counts Resets
}

// clock is that of package time, but in tests.
type clock interface {
	now() time.Time
	after(time.Duration, func()) stopper
}

type stopper interface{ Stop() bool }

type system struct{}

func (system) now() time.Time                          { return time.Now() }
func (system) after(d time.Duration, f func()) stopper { return time.AfterFunc(d, f) }

// AfterFunc calls f in a goroutine of its own, once this process has run for d. A time in which it was stopped begins
// anew the quarter of d that it fell into.
func AfterFunc(d time.Duration, f func()) *Timer { return after(system{}, d, f) }

func after(c clock, d time.Duration, f func()) *Timer {
	t := &Timer{clock: c, f: f}
	t.Reset(d)
	return t
}

// Stop prevents the call, and reports whether it has: false if f has been called or is being called, or the timer was
// stopped before.
func (t *Timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stop()
}

func (t *Timer) stop() bool {
	waits := t.left > 0
	t.left = 0
	if t.timer != nil {
		t.timer.Stop()
	}
	return waits
}

// Reset stops the timer and has it begin anew, with d.
func (t *Timer) Reset(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	t.round++
	t.part, t.left, t.spare = d/parts, parts, false
	t.begin()
}

// begin begins a part. t.mu is held.
func (t *Timer) begin() {
	round := t.round
	t.due = t.clock.now().Add(t.part)
	t.timer = t.clock.after(t.part, func() {
		if t.end(round) {
			t.f()
		}
	})
}

// end ends a part, and reports whether f is to be called. Of two parts in a row one counts, however busy the machine
// is.
func (t *Timer) end(round uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 || round != t.round {
		return false
	}
	if t.spare = !t.spare && t.clock.now().Sub(t.due) > late; !t.spare {
		t.left--
	}
	if t.left == 0 {
		return true
	}
	t.begin()
	return false
}
