package client

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// handleTick does what depends on time alone.
func (f *Fleet) handleTick(now time.Time) {
	for _, m := range f.roster.live {
		f.inFlight.checkSilence(m.session, now)
	}
	f.roster.pruneMembers()
	f.roster.connectMembers(now)
	f.opener.pinWhenReady(now)
	f.inFlight.rescueLateWants(now)
	f.logWaiting(now)
	if !f.isIdle() && !f.roster.hasRemote() {
		f.scaler.askScaler(now)
	}
	f.checkStall(now)
	f.publishStatus(now)
}

// isIdle reports whether nothing waits for a node.
func (f *Fleet) isIdle() bool { return len(f.queue.all) == 0 && f.job.info.Load() != nil }

// logWaiting says now and then that there is no node, and why: the wait may be a long one.
func (f *Fleet) logWaiting(now time.Time) {
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
	f.job.log.Warn("waiting for nodes", "waited", now.Sub(f.inFlight.lastProgress).Round(time.Second), "timeout", f.inFlight.timeout().Round(time.Second), "nodes", list(f.roster.nodeErrors()))
}

// checkStall gives up all wants when nothing has come from any node for too long.
func (f *Fleet) checkStall(now time.Time) {
	waited := now.Sub(f.inFlight.lastProgress)
	if waited < f.inFlight.timeout() {
		return
	}
	f.inFlight.lastProgress = now
	var err error = &StallError{After: waited, Nodes: f.roster.nodeErrors()}
	if f.roster.allLeftOut() {
		err = f.roster.allErrors()
	}
	f.opener.failOpen(err) // if Open still waits: a node may have answered it and never have taken a stream
	for w := range f.queue.all {
		f.inFlight.failWant(w, err)
	}
}

// checkSuspension notes that the fleet's goroutine runs, which it does every tickEvery, and moves the fleet's times on
// by as long as this process was stopped before. It comes before anything else that looks at the time.
func (f *Fleet) checkSuspension(now time.Time) {
	gap := now.Sub(f.lastRun) - tickEvery
	if !f.lastRun.IsZero() && gap > suspendedFor {
		f.job.log.Info("this process was stopped for a while, which counts for no timeout", "for", gap.Round(time.Second/10))
		f.shiftTimes(gap, now)
	}
	f.lastRun = now
}

// shiftTimes moves the times that waits are counted from on, by a time in which this process was stopped. What nodes do
// by their own clocks stays, and so does what is compared with when a node was heard.
func (f *Fleet) shiftTimes(gap time.Duration, now time.Time) {
	f.inFlight.resumed = now
	for _, t := range []*time.Time{&f.inFlight.lastProgress, &f.job.epoch, &f.inFlight.lastGrant, &f.reminder, &f.opener.answersDue, &f.roster.removed} {
		shiftTime(t, gap)
	}
	for _, m := range f.roster.members {
		shiftTime(&m.surplus, gap)
		if m.session != nil {
			shiftTime(&m.session.lastAnswer, gap)
		}
	}
	for w := range f.queue.all {
		shiftTime(&w.Due, gap)
		shiftTime(&w.failedBy, gap)
		for _, a := range w.attempts {
			shiftTime(&a.sent, gap)
			shiftTime(&a.begun, gap)
			a.suspended = true
		}
	}
}

func shiftTime(t *time.Time, by time.Duration) {
	if !t.IsZero() {
		*t = t.Add(by)
	}
}

// suspendedFor is how long the fleet's goroutine has not run, beyond a tick, before that is taken for a time in which
// this process was stopped: by a signal, a freezer, a debugger, a machine that slept. Nobody could take a batch then,
// so it counts for no timeout and against no node.
const suspendedFor = 500 * time.Millisecond

// scalerCalls ask a fleet's scaler for nodes, if it has one. They belong to the fleet's goroutine, but for waiting, and
// for warned while that is set.
type scalerCalls struct {
	job     *job
	last    time.Time
	warned  time.Time
	waiting atomic.Bool
}

// askScalerEvery is how often a trainer that has no node says so; a scaler forgets one that does not for three times as
// long.
const askScalerEvery = 2 * time.Second

// askScaler asks the scaler for nodes, unless that was done a short time ago. It does not wait for the answer. A scaler
// that does not hear it is told of now and then: there may be no node for as long.
func (c *scalerCalls) askScaler(now time.Time) {
	o := &c.job.options
	if o.Scaler == nil || now.Sub(c.last) < askScalerEvery || c.waiting.Load() {
		return
	}
	c.last = now
	c.waiting.Store(true)
	c.job.goroutines.Go(func() {
		defer c.waiting.Store(false)
		ctx, cancel := context.WithTimeout(c.job.ctx, askScalerEvery)
		defer cancel()
		err := o.Scaler.Tell(ctx, &pb.OpenRequest{Job: o.Job})
		if err != nil && c.job.ctx.Err() == nil && now.Sub(c.warned) >= remindEvery {
			c.warned = now
			c.job.log.Warn("the scaler does not hear that this trainer waits for nodes", "err", err)
		}
	})
}

// close lets go of the scaler's connection.
func (c *scalerCalls) close() {
	if c.job.options.Scaler == nil {
		return
	}
	if err := c.job.options.Scaler.Close(); err != nil {
		c.job.log.Warn("closing the scaler's connection failed", "err", err)
	}
}
