package pipeline

import (
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// queue hands out samples of wants, one at a time, by urgency and shares over all accounts: see control/share. So a
// want that becomes urgent waits for one sample, never for a batch.
type queue struct {
	mu     sync.Mutex
	change sync.Cond
	began  time.Time
	wants  share.Queue[*Want]
	own    *share.Account // of wants that name none
	hand   share.BusyMeter
	closed bool
}

func (q *queue) init(workers int) {
	q.change.L = &q.mu
	q.began = time.Now()
	q.own = share.NewAccount(1)
	q.hand.Workers = workers
}

// toSeconds is a time as control/share takes it; the zero time comes before all others.
func (q *queue) toSeconds(t time.Time) float64 {
	if t.IsZero() {
		return -1
	}
	return max(t.Sub(q.began).Seconds(), -1)
}

// pushWant queues w, or returns false if the queue is closed.
func (q *queue) pushWant(w *Want) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	a := w.Account
	if a == nil {
		a = q.own
	}
	q.hand.Add(w.Name.Len(), q.toSeconds(time.Now()))
	w.entry = q.wants.Push(w, a, w.Step, q.toSeconds(w.Due), w.Name.Len())
	if w.cancelled.Load() {
		q.wants.Drop(w.entry)
	}
	q.change.Broadcast()
	return true
}

// dropWant makes a cancelled want end soon.
func (q *queue) dropWant(w *Want) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.entry != nil && !q.closed {
		q.wants.Drop(w.entry)
		q.change.Broadcast()
	}
}

// hastenWant makes what is left of a queued want due earlier, for a step of another account.
func (q *queue) hastenWant(w *Want, a *share.Account, step uint64, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.entry != nil && !q.closed {
		q.wants.MoveUp(w.entry, a, step, q.toSeconds(due))
	}
}

// takeSamples waits for work. It returns samples first to first+n-1 of w: one to make, or all that are left of a
// cancelled want to leave out. places are the roots that one to make was given a place of. After close w is nil.
func (q *queue) takeSamples() (w *Want, first, n int, places []*bulkhead.Root) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if t, ok := q.wants.TakeUnless(q.toSeconds(time.Now()), (*Want).isBlocked); ok {
			w = t.Entry.Value
			if !w.cancelled.Load() {
				places = w.job.roots
			}
			for _, r := range places {
				r.Enter()
			}
			return w, t.First, t.Count, places
		}
		q.change.Wait()
	}
	return nil, 0, 0, nil
}

// wakeWorkers has idle workers look again whether there is work: a root has a place.
func (q *queue) wakeWorkers() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.change.Broadcast()
}

// countFinished counts n samples that were taken as done.
func (q *queue) countFinished(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hand.Add(-n, q.toSeconds(time.Now()))
}

// countMade takes what a want's batch took.
func (q *queue) countMade(w *Want, begun time.Time, coreSeconds float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.wants.RecordCost(w.entry, time.Since(begun).Seconds(), coreSeconds)
	}
}

// closeQueue makes takeSamples return nil and returns the wants that are not all handed out.
func (q *queue) closeQueue() []*Want {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
	var rest []*Want
	for _, e := range q.wants.Clear() {
		rest = append(rest, e.Value)
	}
	return rest
}

// countWaiting is the number of samples not handed out.
func (q *queue) countWaiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wants.Samples()
}

// workAhead is the core-seconds of work before a further want of an account.
func (q *queue) workAhead(a *share.Account) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wants.Ahead(a)
}
