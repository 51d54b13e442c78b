package storage

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// maxProbes is how many probes of a root are in flight at once: one, while it comes back.
const maxProbes = 4

// hungCall is a call that was given up. It stands for a part of its root that does not answer, until it comes back or is answered when it is
// repeated.
type hungCall struct {
	call  *Call
	root  *Root
	err   *HungError
	again func() error // it, once more; nil: it cannot be repeated
	first bool         // the root was well before
}

// suffer makes a root sick of a call. It reports whether the root was well. roots.mu is held.
func (r *Root) suffer(h *hungCall) bool {
	r.timeouts++
	r.hung = append(r.hung, h)
	if !r.sick.CompareAndSwap(false, true) {
		return false
	}
	r.since, r.probed = time.Now(), r.roots.now()
	return true
}

// cause is what the root does not answer, or answered last. roots.mu is held.
func (r *Root) cause() *HungError {
	if len(r.hung) > 0 {
		return r.hung[0].err
	}
	return r.last
}

// answer notes that a call that was given up has come back well. It reports whether the root is well with that. roots.mu is held.
func (r *Root) answer(c *Call) bool {
	i := slices.IndexFunc(r.hung, func(h *hungCall) bool { return h.call == c })
	if i < 0 {
		return false
	}
	r.last = r.hung[i].err
	r.hung = slices.Delete(r.hung, i, i+1)
	return len(r.hung) == 0 && r.sick.CompareAndSwap(true, false)
}

// probeSick begins a probe of each sick root that has none under way, and reports whether a root is sick. mu is held.
func (rs *Roots) probeSick() (sick bool) {
	for _, r := range rs.named {
		sick = rs.probeIfDue(r) || sick
	}
	for _, r := range rs.unnamed {
		sick = rs.probeIfDue(r) || sick
	}
	return sick
}

// probeIfDue begins a probe of a root if it is sick and the last one was long ago, and reports whether it is sick. mu is held.
func (rs *Roots) probeIfDue(r *Root) (sick bool) {
	if !r.sick.Load() {
		return false
	}
	wait := rs.options.ProbeEvery
	if r.probing > 0 { // it is stuck too
		wait = rs.options.Deadline
	}
	if r.probing < maxProbes && !rs.closed && time.Duration(rs.now()-r.probed) > wait {
		r.probing++
		r.probed = rs.now()
		go r.probe(slices.Clone(r.hung)) // its end may never come
	}
	return true
}

// probe looks into the root's folder and repeats what hung, one after the other. The root is well again when all of that was answered: well, or
// within the deadline, whatever the answer.
func (r *Root) probe(hung []*hungCall) {
	rs := r.roots
	well := rs.answers(func() error { return lookInto(r.folder) })
	back := false
	for _, h := range hung {
		if well && (h.again == nil || rs.answers(h.again)) {
			rs.mu.Lock()
			back = r.answer(h.call) || back
			rs.mu.Unlock()
		}
	}
	rs.mu.Lock()
	r.probing--
	r.probed = rs.now()
	rs.mu.Unlock()
	if back {
		rs.tell(r)
	}
}

// answers reports whether a call is answered.
func (rs *Roots) answers(call func() error) bool {
	began := rs.now()
	return call() == nil || time.Duration(rs.now()-began) < rs.options.Deadline
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
