package pipeline

import (
	"slices"
	"sync"
)

// queue hands out samples of wants, one at a time: always of the want that is due first, and among equals of the one that came
// first. So a want that comes in late and is due early waits for one sample, never for a batch.
type queue struct {
	mu     sync.Mutex
	change sync.Cond
	wants  []*Want // not all handed out yet, in the order they are served
	seq    uint64
	queued int // samples not handed out
	closed bool
}

func (q *queue) init() { q.change.L = &q.mu }

func before(a, b *Want) bool {
	if c := a.Due.Compare(b.Due); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}

// push queues w, or returns false if the queue is closed.
func (q *queue) push(w *Want) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.seq++
	w.seq = q.seq
	q.queued += w.Name.Len()
	i := len(q.wants)
	for i > 0 && before(w, q.wants[i-1]) {
		i--
	}
	q.wants = slices.Insert(q.wants, i, w)
	q.change.Broadcast()
	return true
}

// drop moves a cancelled want to the front, so that it ends soon.
func (q *queue) drop(w *Want) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.wants, w); i > 0 {
		q.wants = slices.Insert(slices.Delete(q.wants, i, i+1), 0, w)
	}
	q.change.Broadcast()
}

// take waits for work. It returns samples first to first+n-1 of w: one to make, or all that are left of a cancelled want to
// leave out. After close it returns nil.
func (q *queue) take() (w *Want, first, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.wants) == 0 && !q.closed {
		q.change.Wait()
	}
	if q.closed {
		return nil, 0, 0
	}
	w, first, n = q.wants[0], q.wants[0].next, 1
	if w.cancelled.Load() {
		n = w.Name.Len() - first
	}
	w.next += n
	q.queued -= n
	if w.next == w.Name.Len() {
		q.wants = slices.Delete(q.wants, 0, 1)
	}
	return w, first, n
}

// close makes take return nil and returns the wants that are not all handed out.
func (q *queue) close() []*Want {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
	rest := q.wants
	q.wants = nil
	return rest
}

// length is the number of samples not handed out.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued
}
