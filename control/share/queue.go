package share

import (
	"container/heap"
	"slices"
)

// Queue holds entries by account and hands them out one sample at a time, so that whoever becomes urgent waits for a sample, never for
// a batch. The zero value is ready.
type Queue[T any] struct {
	ledger  ledger
	lines   []*line[T]  // of accounts with entries
	dropped []*Entry[T] // to be handed out whole, before all others
	seq     uint64
	samples int
	turns   int // samples that were handed out, ever
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
	at      int // in its line; negative: it is in none
	among   int // samples that were handed out from its first to its last, its own and others'
}

// line is one account's entries, a heap with those of the earliest step first.
type line[T any] struct {
	account *Account
	entries []*Entry[T]
	soonest *Entry[T] // the one that is due first, whichever step it is for: how urgent the account is
	samples int       // not handed out
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (l *line[T]) Len() int { return len(l.entries) }
func (l *line[T]) Less(i, j int) bool {
	a, b := l.entries[i], l.entries[j]
	return a.step < b.step || a.step == b.step && a.before(b)
}

// Swap exchanges two entries.
func (l *line[T]) Swap(i, j int) {
	e := l.entries
	e[i], e[j] = e[j], e[i]
	e[i].at, e[j].at = i, j
}

// Push adds an entry at the end.
func (l *line[T]) Push(x any) {
	e := x.(*Entry[T]) //nolint:forcetypeassert // place pushes nothing else
	e.at = len(l.entries)
	l.entries = append(l.entries, e)
}

// Pop takes the last entry out.
func (l *line[T]) Pop() any {
	last := len(l.entries) - 1
	e := l.entries[last]
	l.entries[last], e.at = nil, -1
	l.entries = l.entries[:last]
	return e
}

// Turn is what a Queue hands out: samples First to First+Count-1 of an entry.
type Turn[T any] struct {
	Entry        *Entry[T]
	First, Count int
}

// Push queues count samples that a step of the account needs by a due time, in seconds. An account's entries are served in the order of their
// steps, and of their dues within one.
func (q *Queue[T]) Push(value T, a *Account, step uint64, due float64, count int) *Entry[T] {
	q.seq++
	q.samples += count
	e := &Entry[T]{Value: value, account: a, step: step, due: due, seq: q.seq, count: count}
	q.place(e)
	return e
}

func (q *Queue[T]) place(e *Entry[T]) {
	l := q.line(e.account)
	heap.Push(l, e)
	l.samples += e.count - e.next
	l.note(e)
}

// note keeps e in mind if it is due before the line's others.
func (l *line[T]) note(e *Entry[T]) {
	if l.soonest == nil || e.before(l.soonest) {
		l.soonest = e
	}
}

// remove takes an entry out of its line; false: it is in none.
func (q *Queue[T]) remove(e *Entry[T]) bool {
	if e.at < 0 {
		return false
	}
	l := q.line(e.account)
	heap.Remove(l, e.at)
	l.samples -= e.count - e.next
	if e == l.soonest {
		l.soonest = nil
		for _, other := range l.entries {
			l.note(other)
		}
	}
	q.tidy(l)
	return true
}

// Hasten hands what is left of an entry to an account that needs it earlier, for that step, and pays for it. A due that is not earlier changes
// nothing.
func (q *Queue[T]) Hasten(e *Entry[T], a *Account, step uint64, due float64) {
	if due < e.due && q.remove(e) {
		e.account, e.step, e.due = a, step, due
		q.place(e)
	}
}

// before is the order by due, for entries of different accounts, whose steps have nothing to do with each other, or of one step.
func (e *Entry[T]) before(f *Entry[T]) bool {
	return e.due < f.due || e.due == f.due && e.seq < f.seq
}

// line is the account's, made if it has none.
func (q *Queue[T]) line(a *Account) *line[T] {
	for _, l := range q.lines {
		if l.account == a {
			return l
		}
	}
	l := &line[T]{account: a}
	a.tenant.lines++
	q.lines = append(q.lines, l)
	return l
}

// Drop makes an entry come next, with all that is left of it in one turn that nobody pays for. One that was handed out whole stays so.
func (q *Queue[T]) Drop(e *Entry[T]) {
	if q.remove(e) {
		q.dropped = append(q.dropped, e)
	}
}

// tidy forgets a line without entries.
func (q *Queue[T]) tidy(l *line[T]) {
	if len(l.entries) == 0 {
		l.account.rest()
		l.account.tenant.lines--
		q.lines = slices.DeleteFunc(q.lines, func(m *line[T]) bool { return m == l })
	}
}

// Take hands out the next sample; false if there is none.
func (q *Queue[T]) Take(now float64) (Turn[T], bool) { return q.TakeUnless(now, nil) }

// TakeUnless is Take that leaves accounts out for which held says that what they need first has to wait for something else.
func (q *Queue[T]) TakeUnless(now float64, held func(T) bool) (Turn[T], bool) {
	if len(q.dropped) > 0 {
		e := q.dropped[0]
		q.dropped = q.dropped[1:]
		t := Turn[T]{Entry: e, First: e.next, Count: e.count - e.next}
		e.next = e.count
		q.samples -= t.Count
		return t, true
	}
	l := q.choose(now, held)
	if l == nil {
		return Turn[T]{}, false
	}
	e := l.entries[0]
	t := Turn[T]{Entry: e, First: e.next, Count: 1}
	q.ledger.serve(l.account)
	if e.next == 0 {
		e.among = -q.turns
	}
	e.next++
	l.samples--
	q.samples--
	q.turns++
	if e.next == e.count {
		e.among += q.turns
		q.remove(e)
	}
	return t, true
}

// choose is the line that is served next: of urgent accounts that of the party with the least virtual time, of which the one with the least
// of its own, else the one whose want is due first. Lines whose first entry is held are left out.
func (q *Queue[T]) choose(now float64, held func(T) bool) *line[T] {
	var best *line[T]
	for _, l := range q.lines {
		q.ledger.updateUrgency(l.account, l.soonest.due-now)
		if (best == nil || l.precedes(best)) && (held == nil || !held(l.entries[0].Value)) {
			best = l
		}
	}
	return best
}

func (l *line[T]) precedes(m *line[T]) bool {
	a, b := l.account, m.account
	switch {
	case a.urgent != b.urgent:
		return a.urgent
	case a.urgent && a.tenant != b.tenant && a.tenant.v != b.tenant.v:
		return a.tenant.v < b.tenant.v
	case a.urgent && a.tenant == b.tenant && a.v != b.v:
		return a.v < b.v
	}
	return l.soonest.before(m.soonest)
}

// Made takes what an entry took: seconds from its first sample's beginning to its end, and core-seconds. Of the seconds counts what it would have
// taken alone: if others' samples between its own made it urgent sooner, everybody would be urgent at last, and nobody early.
func (q *Queue[T]) Made(e *Entry[T], seconds, coreSeconds float64) {
	if e.among > e.count {
		seconds *= float64(e.count) / float64(e.among)
	}
	q.ledger.made(e.account, seconds, coreSeconds, e.count)
}

// Samples is how many were not handed out.
func (q *Queue[T]) Samples() int { return q.samples }

// Clear empties the queue and returns the entries that were not handed out whole, in no order.
func (q *Queue[T]) Clear() []*Entry[T] {
	all := q.dropped
	for _, l := range q.lines {
		all = append(all, l.entries...)
	}
	*q = Queue[T]{}
	return all
}

// Begun is how many of an entry's samples were handed out.
func (e *Entry[T]) Begun() int { return e.next }

// Ahead is the core-seconds of work before a further entry of an account: all that is queued, or what is queued of the account at the
// share that it has beside the others that wait, whichever is less.
func (q *Queue[T]) Ahead(a *Account) float64 {
	var all, own, weights float64
	for _, l := range q.lines {
		work := q.ledger.price(l.account) * float64(l.samples)
		all += work
		weights += l.account.share()
		if l.account == a {
			own = work
		}
	}
	return min(all, own*weights/a.share())
}
