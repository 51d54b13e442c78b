package client

import (
	"slices"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	tickEvery   = 100 * time.Millisecond
	silentAfter = time.Second // a node that holds wants speaks every 0.25 s
	probeMin    = time.Second
	probeMax    = 30 * time.Second
	remindFirst = 3 * time.Second
	remindEvery = 30 * time.Second
	remindScans = 10 * time.Second // while a node lists files
)

// silence is what a fleet knows of a node that holds wants and says nothing.
type silence struct {
	on    bool
	since time.Time
	delay time.Duration // from one probe to the next
	probe time.Time     // of the next
}

// watch does what depends on time alone.
func (f *Fleet) watch(now time.Time) {
	for _, m := range f.roster.live {
		f.inFlight.listen(m.session, now)
	}
	f.roster.prune()
	f.roster.connect(now)
	f.opening.settle(now)
	f.inFlight.tend(now)
	f.remind(now)
	if !f.isIdle() && !f.roster.hasRemote() {
		f.scaler.ask(now)
	}
	f.checkStall(now)
	f.publish(now)
}

// isIdle reports whether nothing waits for a node.
func (f *Fleet) isIdle() bool { return len(f.queue.all) == 0 && f.job.info.Load() != nil }

// remind says now and then that there is no node, and why: the wait may be a long one.
func (f *Fleet) remind(now time.Time) {
	if f.isIdle() || len(f.roster.live) > 0 {
		f.reminder = time.Time{}
		return
	}
	if f.reminder.IsZero() {
		f.reminder = now.Add(remindFirst)
	}
	if now.Before(f.reminder) {
		return
	}
	f.reminder = now.Add(remindEvery)
	if slices.ContainsFunc(f.roster.members, func(m *member) bool { return len(m.scans) > 0 }) {
		f.reminder = now.Add(remindScans)
	}
	f.job.log.Warn("waiting for nodes", "waited", now.Sub(f.inFlight.progress).Round(time.Second), "timeout", f.inFlight.limit().Round(time.Second), "nodes", list(f.roster.nodeErrors()))
}

// listen takes the wants of a node that has fallen silent away, and gives a node that speaks again its place back.
func (fl *inFlight) listen(s *session, now time.Time) {
	q, heard := &s.silence, s.stream.Heard()
	if q.on && heard.After(q.since) {
		fl.job.log.Info("node speaks again", "node", s.member.node.Addr())
		*q = silence{}
	}
	owes := heard.Before(s.asked) // an answer, be it to wants that were cancelled since
	if owes {
		heard = s.asked
	}
	if heard.Before(fl.resumed) { // nobody listened before
		heard = fl.resumed
	}
	if len(s.wants) == 0 && !owes || now.Sub(heard) <= silentAfter {
		return
	}
	if !q.on {
		fl.job.log.Warn("node silent: its wants go elsewhere", "node", s.member.node.Addr(), "wants", len(s.wants))
		*q = silence{on: true, since: now, delay: probeMin, probe: now.Add(probeMin)}
	}
	for _, a := range s.wants {
		a.cancel(pb.CancelReason_CANCEL_REASON_SILENT)
	}
}

// probe gives nodes that are silent or doubted one want now and then, the one that is needed last.
func (fl *inFlight) probe(now time.Time) {
	for _, m := range fl.roster.live {
		if len(m.session.wants) > 0 || !m.session.silence.on && !m.trust.Doubted() {
			continue
		}
		if at := fl.chooser.spared(m, now); at >= 0 && !fl.chooser.wouldBeLate(fl.queue.waiting[at], m, now) && m.mayBeProbed(fl.job.clock(now), now) {
			w := fl.queue.waiting[at]
			fl.queue.waiting = slices.Delete(fl.queue.waiting, at, at+1)
			fl.send(w, m.session, now)
		}
	}
}

// wouldBeLate reports whether a want that is not late yet would be, if m made it as slowly as is known of it.
func (ch *chooser) wouldBeLate(w *Want, m *member, now time.Time) bool {
	due := w.Due.Sub(now).Seconds()
	return due > 0 && due < m.speed.Finish(ch.load(m, w.count, now))
}

// spared is where in the queue the want is that is needed last of those that were taken from no node before, unless nobody else can have
// them; -1 if there is none.
func (ch *chooser) spared(m *member, now time.Time) int {
	at := -1
	for i, w := range ch.queue.waiting {
		if (w.left == nil || !ch.elsewhere(w, m, now)) && (at < 0 || w.compare(ch.queue.waiting[at]) > 0) {
			at = i
		}
	}
	return at
}

// mayBeProbed reports whether it is time for a probe; then the next one is later.
func (m *member) mayBeProbed(clock float64, now time.Time) bool {
	q := &m.session.silence
	if !q.on {
		return m.usable() && !now.Before(m.busyUntil) && m.trust.Probe(clock)
	}
	if now.Before(q.probe) {
		return false
	}
	q.delay = min(2*q.delay, probeMax)
	q.probe = now.Add(q.delay)
	return true
}

// limit is how long may be waited for a batch.
func (fl *inFlight) limit() time.Duration {
	if fl.effort.Batches == 0 {
		return fl.job.options.StartTimeout
	}
	return fl.job.options.Timeout
}

// checkStall gives up all wants when nothing has come from any node for too long.
func (f *Fleet) checkStall(now time.Time) {
	waited := now.Sub(f.inFlight.progress)
	if waited < f.inFlight.limit() {
		return
	}
	f.inFlight.progress = now
	var err error = &StallError{After: waited, Nodes: f.roster.nodeErrors()}
	if f.roster.allLeftOut() {
		err = f.roster.allErrors()
	}
	f.opening.failed(err) // if Open still waits: a node may have answered it and never have taken a stream
	for w := range f.queue.all {
		f.inFlight.decide(w, err)
	}
}
