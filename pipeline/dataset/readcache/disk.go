package readcache

import (
	"sync/atomic"
	"time"
)

// disk runs calls on a disk, each in a goroutine of its own, since one may never come back. While there is one that was
// given up, and has not come back, no others are made.
type disk struct {
	patience time.Duration // how long a call may take
	places   chan struct{} // of calls that have not come back
	hung     atomic.Int64  // of these, those that were given up
	gaveUp   func()        // is told of each
	slow     func()        // called before each call; tests make it last there
}

// mostCalls is how many calls there may be at once.
const mostCalls = 256

// States of a call.
const (
	running = iota
	ended
	givenUp
)

// run makes a call and waits for its end. False: it was not made, or has not ended in time, and all that it uses is its
// own from then on.
func (d *disk) run(call func()) bool {
	if d.hung.Load() > 0 {
		return false
	}
	select {
	case d.places <- struct{}{}:
	default:
		return false
	}
	var state atomic.Int32
	end := make(chan struct{})
	go func() {
		defer func() { <-d.places }()
		d.slow()
		call()
		if !state.CompareAndSwap(running, ended) {
			d.hung.Add(-1)
		}
		close(end)
	}()
	timer := time.NewTimer(d.patience)
	defer timer.Stop()
	select {
	case <-end:
		return true
	case <-timer.C:
	}
	if !state.CompareAndSwap(running, givenUp) { // it has just ended
		return true
	}
	d.hung.Add(1)
	d.gaveUp()
	return false
}
