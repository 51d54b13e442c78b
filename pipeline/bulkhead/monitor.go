package bulkhead

import "time"

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
	every := rs.options.Patience / 2
	tick := time.NewTicker(every)
	defer tick.Stop()
	ran := ran{last: time.Now()}
	for {
		select {
		case <-tick.C:
			rs.suspended.Add(int64(ran.suspended(time.Now(), every)))
			if !rs.pass() {
				return
			}
		case <-rs.quit:
			return
		}
	}
}

// suspendedFor is how much later than meant a look must be to tell that this process was suspended: by a signal, a
// freezer, a debugger, or with its machine. What the storage did meanwhile is not known, and it is not to blame.
const suspendedFor = 500 * time.Millisecond

// ran tells time in which this process ran from time in which it did not.
type ran struct {
	last  time.Time // when it was asked last
	spare bool      // the time before that did not count
}

// suspended is for how much of the time since the last look this process was suspended, when it looks every so often.
// Of two times in a row one counts, however busy the machine is.
func (r *ran) suspended(now time.Time, every time.Duration) time.Duration {
	gap := now.Sub(r.last) - every
	r.last = now
	if r.spare = !r.spare && gap > suspendedFor; r.spare {
		return gap
	}
	return 0
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
	for _, h := range found.over {
		rs.tellGivenUp(h)
	}
	return goes || rs.resume(len(found.over) > 0)
}

// findings are the calls of which a pass tells their owners.
type findings struct {
	replaced, unwanted []*Call
	over               []*hungCall
}

// examine looks at one call. mu is held.
func (rs *Roots) examine(c *Call, now int64, found *findings) {
	deadline := rs.options.Deadline
	if rs.hurried {
		deadline = min(deadline, hurriedDeadline)
	}
	age := time.Duration(now - c.began.Load())
	c.stuck = c.stuck || age > rs.options.Patience
	quiet := min(age, time.Duration(now-c.root.lastRead.Load()))
	if c.stuck && !c.replaced && c.replaceable() && rs.replaced < rs.options.Replaced {
		c.replaced = true
		rs.replaced++
		found.replaced = append(found.replaced, c)
	}
	switch {
	case c.state.Load() == givenUp && c.unwanted && quiet > deadline:
		h := rs.giveUp(c, age)
		c.unwanted, h.late = false, true
		found.over = append(found.over, h)
	case c.state.Load() != running:
	case (quiet > deadline || c.stuck && c.counted && c.root.sick.Load()) && c.state.CompareAndSwap(running, givenUp):
		c.lose()
		found.over = append(found.over, rs.giveUp(c, age))
	case c.stuck && c.Owner != nil && c.Owner.Unwanted() && c.state.CompareAndSwap(running, givenUp):
		c.lose()
		c.unwanted = true
		found.unwanted = append(found.unwanted, c)
	}
}

// lose has a call that is given up keep a place of its root by itself: it is no other call of Do. roots.mu is held.
func (c *Call) lose() {
	if c.Owner != nil && !c.counted {
		c.lost = true
		c.root.lost.Add(1)
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

// giveUp makes the root sick of a call. mu is held: the call's goroutine cannot come back, and begin another call with
// it, while it is looked at.
func (rs *Roots) giveUp(c *Call, after time.Duration) *hungCall {
	h := &hungCall{call: c, root: c.root, err: &HungError{Root: c.root.name, Op: c.op, Key: string(c.key), After: after}}
	if c.root.why != nil {
		h.err.Cause = c.root.why(c.root.folder)
	}
	if c.Owner != nil {
		h.again = c.Owner.Again()
	}
	h.first = c.root.suffer(h)
	return h
}

// tellGivenUp tells the owner of a call, and then those who want to know of roots.
func (rs *Roots) tellGivenUp(h *hungCall) {
	if h.call.Owner != nil && !h.late {
		h.call.Owner.GaveUp(h.err)
	}
	if h.first {
		rs.tell(h.root)
		rs.free()
	}
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
