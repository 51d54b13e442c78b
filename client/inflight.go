package client

import (
	"time"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// inFlight are the wants that are at nodes: it sends them, takes their answers, and asks other nodes where one is late.
// It belongs to the fleet's goroutine.
type inFlight struct {
	job     *job
	roster  *roster
	queue   *queue
	chooser *chooser

	lastProgress time.Time   // of the last batch, or of the first want after there was none, or of Open
	totalTimes   pick.Median // seconds that wants took, and without the queue
	makeTimes    pick.Median
	hedges       pick.HedgeBudget
	lastGrant    time.Time // of the last hedge that was not earned
	effort       Effort
	traces       traces
	resumed      time.Time // when this process ran again that had been stopped
}

// Effort is what a fleet did to have its batches in time. Counters since Open.
type Effort struct {
	// Batches and Samples delivered, and samples of batches that a node had begun with or made, and that were not used:
	// extra work.
	Batches uint64 `json:"batches"`
	Samples uint64 `json:"samples"`
	Extra   uint64 `json:"extra"`
	// Hedges are second attempts at a batch that a node was slow with; HedgesWon came first.
	Hedges    uint64 `json:"hedges"`
	HedgesWon uint64 `json:"hedges_won"`
	// Moves are wants that were taken from a node before it began; Missed are deadlines that nodes missed.
	Moves  uint64 `json:"moves"`
	Missed uint64 `json:"missed"`
}

// addWant takes a want in.
func (fl *inFlight) addWant(w *Want) {
	if len(fl.queue.all) == 0 {
		fl.lastProgress = time.Now()
	}
	fl.queue.seq++
	w.seq, w.count = fl.queue.seq, node.CountSamples(w.Name)
	fl.roster.wantSamples = w.count
	fl.queue.all[w] = struct{}{}
	fl.queue.waiting = append(fl.queue.waiting, w)
	fl.hedges.AddWant()
}

// failWant ends a want with an error, at once or when no node can write its memory any more.
func (fl *inFlight) failWant(w *Want, err error) {
	if _, ok := fl.queue.all[w]; !ok || w.outcome != nil {
		return
	}
	if len(w.attempts) == 0 {
		fl.queue.removeWaiting(w)
		fl.finishWant(w, Result{Err: err})
		return
	}
	w.outcome = &Result{Err: err}
	w.cancelAttempts()
}

func (fl *inFlight) finishWant(w *Want, r Result) {
	w.Span.recordResult(&r)
	delete(fl.queue.all, w)
	w.Done(r)
}

// cancelSlower gives up the attempts of a want that another one was faster than. That is no failure: abandonAttempt
// learns how slow the node is, and a slow one is asked for what is due late. One that hangs misses its deadline.
func (fl *inFlight) cancelSlower(w *Want, by *attempt, now time.Time) {
	for _, a := range w.attempts {
		if a.sent.Before(by.sent) {
			fl.effort.HedgesWon++
		}
		fl.abandonAttempt(a, pb.CancelReason_CANCEL_REASON_OVERTAKEN, now)
	}
}

// countMissedDeadline counts a deadline; it is the node's own failure if it had begun.
func (fl *inFlight) countMissedDeadline(a *attempt, now time.Time) {
	fl.effort.Missed++
	a.want.missedDeadlines++
	a.want.lastNode = a.session.member
	if !a.begun.IsZero() {
		a.session.member.trust.RecordFailure(fl.job.clock(now))
	}
}

// abandonAttempt gives up an attempt that takes too long, and counts that against the speed of its node.
func (fl *inFlight) abandonAttempt(a *attempt, why pb.CancelReason, now time.Time) {
	a.session.member.speed.RecordWait(a.want.count, a.waitTime(now).Seconds(), fl.job.clock(now))
	a.cancel(why)
}

// timeout is how long may be waited for a batch.
func (fl *inFlight) timeout() time.Duration {
	if fl.effort.Batches == 0 {
		return fl.job.options.StartTimeout
	}
	return fl.job.options.Timeout
}
