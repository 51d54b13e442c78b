package storage

import (
	"errors"
	"io"
	"os"
	"time"
)

// maxProbes is how many probes of a root are in flight at once: one, while it comes back.
const maxProbes = 4

// hurriedDeadline is what calls get where their owner ends.
const hurriedDeadline = 2 * time.Second

// watch sees to it that somebody looks after calls. mu is held.
func (rs *Roots) watch() {
	if rs.monitoring || rs.closed {
		return
	}
	rs.monitoring = true
	rs.monitor.Go(rs.look)
}

// look looks after calls while there are some, or while a root is sick.
func (rs *Roots) look() {
	tick := time.NewTicker(rs.options.Patience / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !rs.pass() {
				return
			}
		case <-rs.quit:
			return
		}
	}
}

// pass looks at all calls once. It is false when there is nothing more to look after.
func (rs *Roots) pass() bool {
	var found findings
	rs.mu.Lock()
	now := rs.now()
	for c := range rs.calls {
		rs.examine(c, now, &found)
	}
	sick := rs.probeSick()
	rs.monitoring = !rs.closed && (len(rs.calls) > 0 || sick)
	goes := rs.monitoring
	rs.mu.Unlock()
	for _, c := range found.replaced {
		c.Owner.Stuck()
	}
	for _, c := range found.unwanted {
		c.Owner.GaveUp(nil)
	}
	for _, c := range found.over {
		rs.giveUp(c, time.Duration(now-c.began.Load()))
	}
	return goes || rs.resume(len(found.over) > 0)
}

// findings are the calls of which a pass tells their owners.
type findings struct{ replaced, unwanted, over []*Call }

// examine looks at one call. mu is held.
func (rs *Roots) examine(c *Call, now int64, found *findings) {
	deadline := rs.options.Deadline
	if rs.hurried {
		deadline = min(deadline, hurriedDeadline)
	}
	age := time.Duration(now - c.began.Load())
	c.stuck = c.stuck || age > rs.options.Patience
	if c.stuck && !c.replaced && c.replaceable() && rs.replaced < rs.options.Replaced {
		c.replaced = true
		rs.replaced++
		found.replaced = append(found.replaced, c)
	}
	switch {
	case c.state.Load() != running:
	case (age > deadline || c.stuck && c.counted && c.root.sick.Load()) && c.state.CompareAndSwap(running, givenUp):
		found.over = append(found.over, c)
	case c.stuck && c.Owner != nil && c.Owner.Unwanted() && c.state.CompareAndSwap(running, givenUp):
		found.unwanted = append(found.unwanted, c)
	}
}

// replaceable reports whether somebody wants another goroutine in place of the call's.
func (c *Call) replaceable() bool { return c.Owner != nil && !c.counted && !c.Surplus }

// resume goes on after all if there is something to look after that was found in the meantime.
func (rs *Roots) resume(found bool) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if !found || rs.closed || rs.monitoring {
		return false
	}
	rs.monitoring = true
	return true
}

// giveUp makes a call's root sick and tells its owner.
func (rs *Roots) giveUp(c *Call, after time.Duration) {
	e := &HungError{Root: c.root.name, Op: c.op, Key: string(c.key), After: after}
	again := func() func() error { return nil }
	if c.Owner != nil {
		c.Owner.GaveUp(e)
		again = c.Owner.Again
	}
	retry := again()
	r := c.root
	rs.mu.Lock()
	r.timeouts++
	first := r.sick.CompareAndSwap(false, true)
	if first {
		r.since, r.cause, r.retry, r.probed = time.Now(), e, retry, time.Now()
	}
	rs.mu.Unlock()
	if first {
		rs.tell(r)
		rs.free()
	}
}

// recover makes a root well. It reports whether it was sick. mu is held.
func (r *Root) recover() bool {
	if !r.sick.CompareAndSwap(true, false) {
		return false
	}
	r.retry = nil
	return true
}

// tell says that a root has changed.
func (rs *Roots) tell(r *Root) {
	rs.telling.Lock()
	defer rs.telling.Unlock()
	rs.mu.Lock()
	s, all := *r.state(), rs.changed
	rs.mu.Unlock()
	for _, tell := range all {
		tell(s)
	}
}

// probeSick begins a probe of each sick root that has none under way, and reports whether a root is sick. mu is held.
func (rs *Roots) probeSick() (sick bool) {
	look := func(r *Root) {
		if !r.sick.Load() {
			return
		}
		sick = true
		wait := rs.options.ProbeEvery
		if r.probing > 0 { // it is stuck too
			wait = rs.options.Deadline
		}
		if r.probing < maxProbes && !rs.closed && time.Since(r.probed) > wait {
			r.probing++
			r.probed = time.Now()
			go r.probe(r.retry) // its end may never come
		}
	}
	for _, r := range rs.named {
		look(r)
	}
	for _, r := range rs.unnamed {
		look(r)
	}
	return sick
}

// probe tries what hung once more, and looks into the folder. A root is well again if that ends within the deadline, whatever the answer, or
// ends well.
func (r *Root) probe(retry func() error) {
	began := time.Now()
	err := lookInto(r.folder)
	if retry != nil {
		if again := retry(); again != nil {
			err = again
		}
	}
	rs := r.roots
	rs.mu.Lock()
	r.probing--
	r.probed = time.Now()
	back := (err == nil || time.Since(began) < rs.options.Deadline) && r.recover()
	rs.mu.Unlock()
	if back {
		rs.tell(r)
	}
}

// lookInto reads the first entry of a folder.
func lookInto(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Readdirnames(1); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
