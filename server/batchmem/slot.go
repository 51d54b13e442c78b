// Package batchmem lends the memory that a node makes batches in: slots within one budget, which are sent by reference.
// A slot is lent to a stream by its Quota, handed to gRPC as a lease, written by a connection that refers to it, and
// free again when the last of them has let go of it, or the garbage collector finds that nobody can reach it. Streams
// are unknown here, and so is what batches hold.
//
// Goroutines: a connection of GatherWrites starts one for each write that another goroutine has to do; Close waits for
// none, and ends them.
package batchmem

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"google.golang.org/grpc/mem"
)

// Memory lends slots within a node's budget. A slot counts against the budget from the moment it is allocated until the
// garbage collector may have it; returned slots are kept for the next want, since fresh memory costs more than sending
// a batch.
type Memory struct {
	// Limit is the bytes of all slots together. It is set before the first use.
	Limit int64

	mu     sync.Mutex
	used   int64    // bytes of all slots, lent or free
	lent   int64    // bytes of the lent ones
	free   [][]byte // the latest returned last
	leases []*lease // of lent ones that gRPC sends, by where they lie
}

// Quota is what one stream may hold of a memory.
type Quota struct {
	memory *Memory
	// Limit is the most bytes that the stream may hold; not to be changed.
	Limit   int64
	budget  *Budget       // what it shares with other streams; nil: nothing
	lent    int64         // guarded by Memory.mu
	Changed chan struct{} // told when lent falls, but for what the garbage collector gives back
}

// Budget is what several streams together may hold of a memory. It is guarded by Memory.mu.
type Budget struct {
	// Limit is the bytes that they may hold together; 0: as many as there are.
	Limit int64
	// Weight is their share of the free memory.
	Weight float64
	lent   int64
}

// freeShare is how much of the free memory those of weight 1 may hold: some is left for whoever comes next, however
// many want however much. Somebody alone has 4/5 of all, two have 4/9 each. (Choudhury and Hahne, dynamic queue length
// thresholds, IEEE/ACM Transactions on Networking 6, 1998.)
const freeShare = 4

// hasRoom reports whether a want that has own bytes may have more, of a memory that has free bytes besides them.
// Whatever is free one want may have.
func (b *Budget) hasRoom(bytes, own, free int64) bool {
	return b == nil || (b.Limit <= 0 || b.lent+bytes <= b.Limit) && (b.lent <= own || float64(b.lent-own) <= freeShare*b.Weight*float64(free))
}

func (b *Budget) addLent(bytes int64) {
	if b != nil {
		b.lent += bytes
	}
}

// NewQuota returns a quota of at most limit bytes of a memory.
func NewQuota(m *Memory, limit int64) *Quota {
	return &Quota{memory: m, Limit: min(limit, m.Limit), Changed: make(chan struct{}, 1)}
}

// JoinBudget makes a quota part of a budget that it shares with others.
func (q *Quota) JoinBudget(group *Budget) *Quota {
	q.budget = group
	if group != nil && group.Limit > 0 {
		q.Limit = min(q.Limit, group.Limit)
	}
	return q
}

// Slot is room for one batch, lent by a quota until Release.
type Slot struct {
	quota *Quota
	Bytes []byte
}

// slotStep is what sizes of slots are rounded up to. It also keeps slots above the size below which gRPC does not tell
// when it is done with a buffer.
const slotStep = 4 << 10

func roundUp(bytes int) int64 { return (int64(bytes) + slotStep - 1) / slotStep * slotStep }

// Fits reports whether a slot of that size can be had at all.
func (q *Quota) Fits(bytes int) bool {
	return bytes >= 0 && bytes < math.MaxInt-slotStep && roundUp(bytes) <= q.Limit
}

// TakeSlot lends a slot of at least one byte to a want that holds own bytes, or nothing when the budget is used up.
func (q *Quota) TakeSlot(bytes int, own int64) *Slot {
	m := q.memory
	size := roundUp(max(bytes, 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.lent+size > q.Limit || !q.budget.hasRoom(size, own, m.Limit-m.lent-size) {
		return nil
	}
	buf := m.takeFree(size)
	if buf == nil {
		if !m.makeRoom(size) {
			return nil
		}
		m.used += size
		buf = make([]byte, size)
	}
	q.lent += int64(len(buf))
	q.budget.addLent(int64(len(buf)))
	m.lent += int64(len(buf))
	return &Slot{quota: q, Bytes: buf}
}

// takeFree finds a free slot that is not much too large.
func (m *Memory) takeFree(size int64) []byte {
	for i, b := range slices.Backward(m.free) {
		if n := int64(len(b)); n >= size && n <= size+size/4 {
			m.free = slices.Delete(m.free, i, i+1)
			return b
		}
	}
	return nil
}

// makeRoom drops free slots, the longest unused first, until size more bytes fit.
func (m *Memory) makeRoom(size int64) bool {
	for m.used+size > m.Limit && len(m.free) > 0 {
		m.used -= int64(len(m.free[0]))
		m.free = slices.Delete(m.free, 0, 1)
	}
	return m.used+size <= m.Limit
}

// Release ends a loan. With keep the memory may be lent again at once; without, somebody may still look at it, and it
// is left to the garbage collector.
func (s *Slot) Release(keep bool) {
	q := s.quota
	m := q.memory
	size := int64(len(s.Bytes))
	m.mu.Lock()
	q.lent -= size
	q.budget.addLent(-size)
	m.lent -= size
	if keep {
		m.free = append(m.free, s.Bytes)
	} else {
		m.used -= size
	}
	m.mu.Unlock()
	if keep { // not from the garbage collector's goroutine
		q.signalChange()
	}
}

func (q *Quota) signalChange() {
	select {
	case q.Changed <- struct{}{}:
	default:
	}
}

// ChargeBytes counts memory that is no slot as lent to a want that holds own bytes, until DischargeBytes; false when
// the budget is used up.
func (q *Quota) ChargeBytes(bytes, own int64) bool {
	m := q.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.lent+bytes > q.Limit || !q.budget.hasRoom(bytes, own, m.Limit-m.lent-bytes) || !m.makeRoom(bytes) {
		return false
	}
	q.lent += bytes
	q.budget.addLent(bytes)
	m.lent += bytes
	m.used += bytes
	return true
}

// DischargeBytes gives back what ChargeBytes counted.
func (q *Quota) DischargeBytes(bytes int64) {
	m := q.memory
	m.mu.Lock()
	q.lent -= bytes
	q.budget.addLent(-bytes)
	m.lent -= bytes
	m.used -= bytes
	m.mu.Unlock()
	q.signalChange()
}

// TrimFree drops all free slots.
func (m *Memory) TrimFree() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.free {
		m.used -= int64(len(b))
	}
	m.free = nil
}

// CountLent is the bytes that a stream holds.
func (q *Quota) CountLent() int64 {
	q.memory.mu.Lock()
	defer q.memory.mu.Unlock()
	return q.lent
}

// CountBytes are the bytes of all slots and of the lent ones.
func (m *Memory) CountBytes() (used, lent int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.lent
}

// LeaseBytes hands the first bytes of a slot to gRPC. The slot is released once the last reference to the buffer has
// been freed, and all that hold the lease besides have let go. When a connection dies, gRPC forgets some of what it had
// queued without freeing it: then the slot is released when the garbage collector finds the buffer unreachable.
func (s *Slot) LeaseBytes(bytes int) mem.Buffer {
	handle := new([]byte)
	*handle = s.Bytes[:bytes]
	l := &lease{slot: s, data: *handle, holders: 1}
	l.cleanup = runtime.AddCleanup(handle, (*lease).releaseLost, l)
	s.quota.memory.addLease(l)
	return mem.NewBuffer(handle, l)
}

// lease is a gRPC buffer pool for one buffer.
type lease struct {
	slot    *Slot
	data    []byte
	cleanup runtime.Cleanup

	// Guarded by Memory.mu.
	holders int  // gRPC, and connections that have yet to write some of it
	lost    bool // by gRPC, which may still read it
}

// Get implements mem.BufferPool. Nobody calls it.
func (l *lease) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// Put implements mem.BufferPool: gRPC is done with the buffer.
func (l *lease) Put(handle *[]byte) {
	l.cleanup.Stop()
	runtime.KeepAlive(handle)
	l.release()
}

// releaseLost is told in place of Put, by the garbage collector.
func (l *lease) releaseLost() {
	m := l.slot.quota.memory
	m.mu.Lock()
	l.lost = true
	m.mu.Unlock()
	l.release()
}

// release is told by each that holds the lease, once. The last one releases the slot.
func (l *lease) release() {
	m := l.slot.quota.memory
	m.mu.Lock()
	l.holders--
	over, keep := l.holders == 0, !l.lost
	if over {
		if at, ok := m.findLease(l.data); ok {
			m.leases = slices.Delete(m.leases, at, at+1)
		}
	}
	m.mu.Unlock()
	if over {
		l.slot.Release(keep)
	}
}

// addLease notes a lease, for holdLease.
func (m *Memory) addLease(l *lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, _ := m.findLease(l.data)
	m.leases = slices.Insert(m.leases, at, l)
}

// holdLease finds the lease that p is of, which the caller then holds; nil: there is none. p is in use, so the lease is
// not over.
func (m *Memory) holdLease(p []byte) *lease {
	if m == nil || len(p) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.findLease(p)
	if !ok && at > 0 {
		at-- // the last one that begins before p
	}
	if at == len(m.leases) || !m.leases[at].covers(p) {
		return nil
	}
	m.leases[at].holders++
	return m.leases[at]
}

// findLease is where a lease that begins where p does is, or would be. mu is held.
func (m *Memory) findLease(p []byte) (at int, ok bool) {
	begin, _ := extentOf(p)
	return slices.BinarySearchFunc(m.leases, begin, func(l *lease, begin uintptr) int {
		from, _ := extentOf(l.data)
		return cmp.Compare(from, begin)
	})
}

// covers reports whether p, which is not empty, lies in what is leased.
func (l *lease) covers(p []byte) bool {
	from, to := extentOf(l.data)
	begin, end := extentOf(p)
	return from <= begin && end <= to
}

// endsWith reports whether p, a part of it, goes to its end.
func (l *lease) endsWith(p []byte) bool {
	_, to := extentOf(l.data)
	_, end := extentOf(p)
	return end == to
}

// extentOf is where a slice begins and ends, to compare only: it keeps nothing alive.
func extentOf(b []byte) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from, from + uintptr(len(b))
}
