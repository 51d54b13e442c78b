package share

import (
	"container/heap"
	"slices"
)

// Queue holds entries by account and hands them out one sample at a time, so that whoever becomes urgent waits for a
// sample, never for a batch. The zero value is ready.
type Queue[T any] struct {
	ledger  ledger
	heaps   []*accountHeap[T] // of accounts with entries
	dropped []*Entry[T]       // to be handed out whole, before all others
	seq     uint64
	samples int
	served  int // samples that were handed out, ever
}

// Entry is one want in a Queue.
type Entry[T any] struct {
	Value T

	account *Account
	step    uint64
	due     float64
	seq     uint64
	next    int // sample to hand out
	count   int
	at      int // in its heap; negative: it is in none
	among   int // samples that were handed out from its first to its last, its own and others'
}

// accountHeap is one account's entries, a heap with those of the earliest step first.
type accountHeap[T any] struct {
	account *Account
	entries []*Entry[T]
	soonest *Entry[T] // the one that is due first, whichever step it is for: how urgent the account is
	samples int       // not handed out
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (l *accountHeap[T]) Len() int { return len(l.entries) }
func (l *accountHeap[T]) Less(i, j int) bool {
	a, b := l.entries[i], l.entries[j]
	return a.step < b.step || a.step == b.step && a.isDueBefore(b)
}

// Swap exchanges two entries.
func (l *accountHeap[T]) Swap(i, j int) {
	e := l.entries
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push adds an entry at the end.
func (l *accountHeap[T]) Push(x any) {
	e := x.(*Entry[T]) //nolint:forcetypeassert // insertEntry pushes nothing else
	e.at = len(l.entries)
	l.entries = append(l.entries, e)
}

// Pop takes the last entry out.
func (l *accountHeap[T]) Pop() any {
	last := len(l.entries) - 1
	e := l.entries[last]
	l.entries[last], e.at = nil, -1
	l.entries = l.entries[:last]
	return e
}

// Portion is what a Queue hands out: samples First to First+Count-1 of an entry.
type Portion[T any] struct {
	Entry        *Entry[T]
	First, Count int
}

// Push queues count samples that a step of the account needs by a due time, in seconds. An account's entries are served
// in the order of their steps, and of their dues within one.
func (q *Queue[T]) Push(value T, a *Account, step uint64, due float64, count int) *Entry[T] {
	q.seq++
	q.samples += count
	e := &Entry[T]{Value: value, account: a, step: step, due: due, seq: q.seq, count: count}
	q.insertEntry(e)
	return e
}

func (q *Queue[T]) insertEntry(e *Entry[T]) {
	l := q.heapOf(e.account)
	heap.Push(l, e)
	l.samples += e.count - e.next
	l.updateSoonest(e)
}

// updateSoonest keeps e as the soonest if it is due before the others of the heap.
func (l *accountHeap[T]) updateSoonest(e *Entry[T]) {
	if l.soonest == nil || e.isDueBefore(l.soonest) {
		l.soonest = e
	}
}

// removeEntry takes an entry out of its heap; false: it is in none.
func (q *Queue[T]) removeEntry(e *Entry[T]) bool {
	if e.at < 0 {
		return false
	}
	l := q.heapOf(e.account)
	heap.Remove(l, e.at)
	l.samples -= e.count - e.next
	if e == l.soonest {
		l.soonest = nil
		for _, other := range l.entries {
			l.updateSoonest(other)
		}
	}
	q.removeIfEmpty(l)
	return true
}

// MoveUp hands what is left of an entry to an account that needs it earlier, for that step, and pays for it. A due that
// is not earlier changes nothing.
func (q *Queue[T]) MoveUp(e *Entry[T], a *Account, step uint64, due float64) {
	if due < e.due && q.removeEntry(e) {
		e.account, e.step, e.due = a, step, due
		q.insertEntry(e)
	}
}

// isDueBefore is the order by due, for entries of different accounts, whose steps have nothing to do with each other,
// or of one step.
func (e *Entry[T]) isDueBefore(f *Entry[T]) bool {
	return e.due < f.due || e.due == f.due && e.seq < f.seq
}

// heapOf is the account's, made if it has none.
func (q *Queue[T]) heapOf(a *Account) *accountHeap[T] {
	for _, l := range q.heaps {
		if l.account == a {
			return l
		}
	}
	l := &accountHeap[T]{account: a}
	a.tenant.activeAccounts++
	q.heaps = append(q.heaps, l)
	return l
}

// Drop makes an entry come next, with all that is left of it in one portion that nobody pays for. One that was handed
// out whole stays so.
func (q *Queue[T]) Drop(e *Entry[T]) {
	if q.removeEntry(e) {
		q.dropped = append(q.dropped, e)
	}
}

// removeIfEmpty forgets a heap without entries.
func (q *Queue[T]) removeIfEmpty(l *accountHeap[T]) {
	if len(l.entries) == 0 {
		l.account.endUrgency()
		l.account.tenant.activeAccounts--
		q.heaps = slices.DeleteFunc(q.heaps, func(m *accountHeap[T]) bool { return m == l })
	}
}

// Take hands out the next sample; false if there is none.
func (q *Queue[T]) Take(now float64) (Portion[T], bool) { return q.TakeUnless(now, nil) }

// TakeUnless is Take that leaves accounts out for which held says that what they need first has to wait for something
// else.
func (q *Queue[T]) TakeUnless(now float64, held func(T) bool) (Portion[T], bool) {
	if len(q.dropped) > 0 {
		e := q.dropped[0]
		q.dropped = q.dropped[1:]
		t := Portion[T]{Entry: e, First: e.next, Count: e.count - e.next}
		e.next = e.count
		q.samples -= t.Count
		return t, true
	}
	l := q.chooseHeap(now, held)
	if l == nil {
		return Portion[T]{}, false
	}
	e := l.entries[0]
	t := Portion[T]{Entry: e, First: e.next, Count: 1}
	q.ledger.chargeSample(l.account)
	if e.next == 0 {
		e.among = -q.served
	}
	e.next++
	l.samples--
	q.samples--
	q.served++
	if e.next == e.count {
		e.among += q.served
		q.removeEntry(e)
	}
	return t, true
}

// chooseHeap is the heap that is served next: of urgent accounts that of the tenant with the least virtual time, of
// which the one with the least of its own, else the one whose want is due first. Heaps whose first entry is held are
// left out.
func (q *Queue[T]) chooseHeap(now float64, held func(T) bool) *accountHeap[T] {
	var best *accountHeap[T]
	for _, l := range q.heaps {
		q.ledger.updateUrgency(l.account, l.soonest.due-now)
		if (best == nil || l.isServedBefore(best)) && (held == nil || !held(l.entries[0].Value)) {
			best = l
		}
	}
	return best
}

func (l *accountHeap[T]) isServedBefore(m *accountHeap[T]) bool {
	a, b := l.account, m.account
	switch {
	case a.urgent != b.urgent:
		return a.urgent
	case a.urgent && a.tenant != b.tenant && a.tenant.v != b.tenant.v:
		return a.tenant.v < b.tenant.v
	case a.urgent && a.tenant == b.tenant && a.v != b.v:
		return a.v < b.v
	}
	return l.soonest.isDueBefore(m.soonest)
}

// RecordCost takes what an entry took: seconds from its first sample's beginning to its end, and core-seconds. Of the
// seconds counts what it would have taken alone: if others' samples between its own made it urgent sooner, everybody
// would be urgent at last, and nobody early.
func (q *Queue[T]) RecordCost(e *Entry[T], seconds, coreSeconds float64) {
	if e.among > e.count {
		seconds *= float64(e.count) / float64(e.among)
	}
	q.ledger.recordCost(e.account, seconds, coreSeconds, e.count)
}

// Samples is how many were not handed out.
func (q *Queue[T]) Samples() int { return q.samples }

// Clear empties the queue and returns the entries that were not handed out whole, in no order.
func (q *Queue[T]) Clear() []*Entry[T] {
	all := q.dropped
	for _, l := range q.heaps {
		all = append(all, l.entries...)
	}
	*q = Queue[T]{}
	return all
}

// Begun is how many of an entry's samples were handed out.
func (e *Entry[T]) Begun() int { return e.next }

// Ahead is the core-seconds of work before a further entry of an account: all that is queued, or what is queued of the
// account at the share that it has beside the others that wait, whichever is less.
func (q *Queue[T]) Ahead(a *Account) float64 {
	var all, own, weights float64
	for _, l := range q.heaps {
		work := q.ledger.sampleCost(l.account) * float64(l.samples)
		all += work
		weights += l.account.weightShare()
		if l.account == a {
			own = work
		}
	}
	return min(all, own*weights/a.weightShare())
}
