package server

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"google.golang.org/grpc/mem"
)

// memory lends slots within a node's budget. A slot counts against the budget from the moment it is allocated until the garbage
// collector may have it; returned slots are kept for the next want, since fresh memory costs more than sending a batch.
type memory struct {
	limit int64

	mu     sync.Mutex
	used   int64    // bytes of all slots, lent or free
	lent   int64    // bytes of the lent ones
	free   [][]byte // the latest returned last
	leases []*lease // of lent ones that gRPC sends, by where they lie
}

// quota is what one stream may hold of a memory.
type quota struct {
	memory *memory
	limit  int64
	group  *budget       // what it shares with other streams; nil: nothing
	lent   int64         // guarded by memory.mu
	change chan struct{} // told when lent falls, but for what the garbage collector gives back
}

// budget is what several streams together may hold of a memory. It is guarded by memory.mu.
type budget struct {
	limit  int64 // 0: none
	weight float64
	lent   int64
}

// freeShare is how much of the free memory those of weight 1 may hold: some is left for whoever comes next, however many want however much.
// Somebody alone has 4/5 of all, two have 4/9 each. (Choudhury and Hahne, dynamic queue length thresholds, IEEE/ACM Transactions on Networking
// 6, 1998.)
const freeShare = 4

// fits reports whether a want that has own bytes may have more, of a memory that has free bytes besides them. Whatever is free one want may have.
func (b *budget) fits(bytes, own, free int64) bool {
	return b == nil || (b.limit <= 0 || b.lent+bytes <= b.limit) && (b.lent <= own || float64(b.lent-own) <= freeShare*b.weight*float64(free))
}

func (b *budget) add(bytes int64) {
	if b != nil {
		b.lent += bytes
	}
}

func newQuota(m *memory, limit int64) *quota {
	return &quota{memory: m, limit: min(limit, m.limit), change: make(chan struct{}, 1)}
}

// within makes a quota part of a budget that it shares with others.
func (q *quota) within(group *budget) *quota {
	q.group = group
	if group != nil && group.limit > 0 {
		q.limit = min(q.limit, group.limit)
	}
	return q
}

// slot is room for one batch, lent by a quota until release.
type slot struct {
	quota *quota
	buf   []byte
}

// slotStep is what sizes of slots are rounded up to. It also keeps slots above the size below which gRPC does not tell when
// it is done with a buffer.
const slotStep = 4 << 10

func roundUp(bytes int) int64 { return (int64(bytes) + slotStep - 1) / slotStep * slotStep }

// fits reports whether a slot of that size can be had at all.
func (q *quota) fits(bytes int) bool {
	return bytes >= 0 && bytes < math.MaxInt-slotStep && roundUp(bytes) <= q.limit
}

// take lends a slot of at least one byte to a want that holds own bytes, or nothing when the budget is used up.
func (q *quota) take(bytes int, own int64) *slot {
	m := q.memory
	size := roundUp(max(bytes, 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.lent+size > q.limit || !q.group.fits(size, own, m.limit-m.lent-size) {
		return nil
	}
	buf := m.reuse(size)
	if buf == nil {
		if !m.makeRoom(size) {
			return nil
		}
		m.used += size
		buf = make([]byte, size)
	}
	q.lent += int64(len(buf))
	q.group.add(int64(len(buf)))
	m.lent += int64(len(buf))
	return &slot{quota: q, buf: buf}
}

// reuse finds a free slot that is not much too large.
func (m *memory) reuse(size int64) []byte {
	for i, b := range slices.Backward(m.free) {
		if n := int64(len(b)); n >= size && n <= size+size/4 {
			m.free = slices.Delete(m.free, i, i+1)
			return b
		}
	}
	return nil
}

// makeRoom drops free slots, the longest unused first, until size more bytes fit.
func (m *memory) makeRoom(size int64) bool {
	for m.used+size > m.limit && len(m.free) > 0 {
		m.used -= int64(len(m.free[0]))
		m.free = slices.Delete(m.free, 0, 1)
	}
	return m.used+size <= m.limit
}

// release ends a loan. With keep the memory may be lent again at once; without, somebody may still look at it, and it is left to
// the garbage collector.
func (s *slot) release(keep bool) {
	q := s.quota
	m := q.memory
	size := int64(len(s.buf))
	m.mu.Lock()
	q.lent -= size
	q.group.add(-size)
	m.lent -= size
	if keep {
		m.free = append(m.free, s.buf)
	} else {
		m.used -= size
	}
	m.mu.Unlock()
	if keep { // not from the garbage collector's goroutine
		q.tell()
	}
}

func (q *quota) tell() {
	select {
	case q.change <- struct{}{}:
	default:
	}
}

// charge counts memory that is no slot as lent to a want that holds own bytes, until discharge; false when the budget is used up.
func (q *quota) charge(bytes, own int64) bool {
	m := q.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.lent+bytes > q.limit || !q.group.fits(bytes, own, m.limit-m.lent-bytes) || !m.makeRoom(bytes) {
		return false
	}
	q.lent += bytes
	q.group.add(bytes)
	m.lent += bytes
	m.used += bytes
	return true
}

func (q *quota) discharge(bytes int64) {
	m := q.memory
	m.mu.Lock()
	q.lent -= bytes
	q.group.add(-bytes)
	m.lent -= bytes
	m.used -= bytes
	m.mu.Unlock()
	q.tell()
}

// trim drops all free slots.
func (m *memory) trim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.free {
		m.used -= int64(len(b))
	}
	m.free = nil
}

// outstanding is the bytes that a stream holds.
func (q *quota) outstanding() int64 {
	q.memory.mu.Lock()
	defer q.memory.mu.Unlock()
	return q.lent
}

// stats are the bytes of all slots and of the lent ones.
func (m *memory) stats() (used, lent int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.lent
}

// lease hands the first bytes of a slot to gRPC. The slot is released once the last reference to the buffer has been freed, and all that
// hold the lease besides have let go. When a connection dies, gRPC forgets some of what it had queued without freeing it: then the slot is released when
// the garbage collector finds the buffer unreachable.
func (s *slot) lease(bytes int) mem.Buffer {
	handle := new([]byte)
	*handle = s.buf[:bytes]
	l := &lease{slot: s, data: *handle, holders: 1}
	l.cleanup = runtime.AddCleanup(handle, (*lease).forgotten, l)
	s.quota.memory.lend(l)
	return mem.NewBuffer(handle, l)
}

// lease is a gRPC buffer pool for one buffer.
type lease struct {
	slot    *slot
	data    []byte
	cleanup runtime.Cleanup

	// Guarded by memory.mu.
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
	l.letGo()
}

// forgotten is told in place of Put, by the garbage collector.
func (l *lease) forgotten() {
	m := l.slot.quota.memory
	m.mu.Lock()
	l.lost = true
	m.mu.Unlock()
	l.letGo()
}

// letGo is told by each that holds the lease, once. The last one releases the slot.
func (l *lease) letGo() {
	m := l.slot.quota.memory
	m.mu.Lock()
	l.holders--
	over, keep := l.holders == 0, !l.lost
	if over {
		if at, ok := m.find(l.data); ok {
			m.leases = slices.Delete(m.leases, at, at+1)
		}
	}
	m.mu.Unlock()
	if over {
		l.slot.release(keep)
	}
}

// lend notes a lease, for hold.
func (m *memory) lend(l *lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, _ := m.find(l.data)
	m.leases = slices.Insert(m.leases, at, l)
}

// hold finds the lease that p is of, which the caller then holds; nil: there is none. p is in use, so the lease is not over.
func (m *memory) hold(p []byte) *lease {
	if m == nil || len(p) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.find(p)
	if !ok && at > 0 {
		at-- // the last one that begins before p
	}
	if at == len(m.leases) || !m.leases[at].has(p) {
		return nil
	}
	m.leases[at].holders++
	return m.leases[at]
}

// find is where a lease that begins where p does is, or would be. mu is held.
func (m *memory) find(p []byte) (at int, ok bool) {
	begin, _ := extent(p)
	return slices.BinarySearchFunc(m.leases, begin, func(l *lease, begin uintptr) int {
		from, _ := extent(l.data)
		return cmp.Compare(from, begin)
	})
}

// has reports whether p, which is not empty, lies in what is leased.
func (l *lease) has(p []byte) bool {
	from, to := extent(l.data)
	begin, end := extent(p)
	return from <= begin && end <= to
}

// ends reports whether p, a part of it, goes to its end.
func (l *lease) ends(p []byte) bool {
	_, to := extent(l.data)
	_, end := extent(p)
	return end == to
}

// extent is where a slice begins and ends, to compare only: it keeps nothing alive.
func extent(b []byte) (from, to uintptr) {
	from = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return from, from + uintptr(len(b))
}
