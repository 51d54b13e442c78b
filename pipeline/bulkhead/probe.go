package bulkhead

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// manyProbes is how many probes of a root are in flight from where on each further one comes after twice the time: each
// keeps a thread for as long as the kernel does not give it back.
const manyProbes = 4

// hungCall is a call that was given up. It stands for a part of its root that does not answer, until it comes back or
// is answered when it is repeated.
type hungCall struct {
	call  *Call
	root  *Root
	err   *HungError
	again func() error // it, once more; nil: it cannot be repeated
	first bool         // the root was well before
	late  bool         // its owner was told before, that it was unwanted
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

// answer notes that a call that was given up has come back well. It reports whether the root is well with that.
// roots.mu is held.
func (r *Root) answer(c *Call) bool {
	i := slices.IndexFunc(r.hung, func(h *hungCall) bool { return h.call == c })
	if i < 0 {
		return false
	}
	r.last = r.hung[i].err
	r.hung = slices.Delete(r.hung, i, i+1)
	if len(r.hung) > 0 || !r.sick.CompareAndSwap(true, false) {
		return false
	}
	r.roots.generation++
	r.generation.Store(r.roots.generation)
	r.writeOff()
	return true
}

// Generation is another one, and a greater one, whenever the root has come back after it did not answer. What was
// opened on it in an earlier generation may hang for ever: when a file system is unmounted and mounted anew, as file
// servers are repaired, what is open stays with the one that is gone.
func (r *Root) Generation() uint64 { return r.generation.Load() }

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

// probeIfDue begins a probe of a root if it is sick and the last one was long ago, and reports whether it is sick. mu
// is held.
func (rs *Roots) probeIfDue(r *Root) (sick bool) {
	if !r.sick.Load() || rs.closed {
		return r.sick.Load()
	}
	now := rs.now()
	if time.Duration(now-r.looked) > rs.options.ProbeEvery && !r.looking {
		r.looked, r.looking = now, true
		go r.lookAtMounts(append([]string{r.folder}, r.also...))
	}
	if time.Duration(now-r.probed) > r.probeWait() {
		r.probing++
		r.probed = now
		go r.probe(slices.Clone(r.hung), r.remounted) // its end may never come
	}
	return true
}

// probeWait is how long after the latest probe began or ended another one begins. Those in flight are stuck too.
// roots.mu is held.
func (r *Root) probeWait() time.Duration {
	o := &r.roots.options
	switch {
	case r.probing == 0:
		return o.ProbeEvery
	case r.probing < manyProbes:
		return o.Deadline
	}
	return o.Deadline << min(r.probing-manyProbes+1, 16)
}

// lookAtMounts looks whether something was mounted or unmounted where the root lies. Then probes that are stuck are
// stuck with what lay there before, and count no more.
func (r *Root) lookAtMounts(folders []string) {
	mounts := mountsOf(r.roots.mountTable, folders)
	r.roots.mu.Lock()
	defer r.roots.mu.Unlock()
	r.looking = false
	if mounts != r.mounts && r.mounts != "" {
		r.remounted++
		r.probing = 0
	}
	r.mounts = mounts
}

// probe looks into the root's folder and repeats what hung, one after the other. The root is well again when all of
// that was answered: well, or within the deadline, whatever the answer. It counts as long as nothing is mounted anew.
func (r *Root) probe(hung []*hungCall, remounted int) {
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
	if r.remounted == remounted {
		r.probing--
		r.probed = rs.now()
	}
	rs.mu.Unlock()
	if back {
		rs.tell(r)
		rs.free()
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
