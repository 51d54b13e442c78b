package server

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
)

func TestQuotaAndBudget(t *testing.T) {
	m := &memory{limit: 100 << 10}
	a, b := newQuota(m, 60<<10), newQuota(m, 1<<40)
	if a.fits(61<<10) || !a.fits(60<<10) || b.fits(101<<10) || !b.fits(100<<10) || a.fits(-1) || b.fits(math.MaxInt) {
		t.Error("fits does not follow the limits")
	}
	s := a.take(50<<10, 0)
	if s == nil || len(s.buf) != 52<<10 {
		t.Fatal("no slot within the budget, or none of whole steps")
	}
	if a.take(12<<10, 0) != nil {
		t.Error("a slot over the quota")
	}
	if b.take(49<<10, 0) != nil {
		t.Error("a slot over the budget")
	}
	u := b.take(48<<10, 0)
	if u == nil {
		t.Fatal("no slot though the budget has room for it")
	}
	s.release(true)
	u.release(false)
	if used, lent := m.stats(); used != 52<<10 || lent != 0 || a.outstanding() != 0 || b.outstanding() != 0 {
		t.Errorf("%d bytes used, %d lent after all were returned", used, lent)
	}
	m.trim()
	if used, _ := m.stats(); used != 0 {
		t.Errorf("%d bytes used after a trim", used)
	}
}

// Whoever comes later finds memory, however much those before him want, and who counts less has less; what is free one want may have.
func TestSharesOfMemory(t *testing.T) {
	m := &memory{limit: 1000 << 10}
	hold := func(weight float64) (held int64, q *quota) {
		q = newQuota(m, m.limit).within(&budget{weight: weight})
		for q.take(4<<10, 0) != nil {
			held += 4
		}
		return held, q
	}
	if held, _ := hold(0.05); held < 160 || held > 170 {
		t.Errorf("a weight of 0.05 holds %d KiB, a sixth are its due", held)
	}
	held, q := hold(1)
	if held < 660 || held > 672 {
		t.Errorf("somebody who comes later holds %d KiB, four fifths of the rest are his due", held)
	}
	if !q.charge(100<<10, held<<10) || q.charge(4<<10, 0) {
		t.Error("his only want gets what is free, a further one gets nothing")
	}
	if newQuota(m, m.limit).within(&budget{weight: 0.01}).take(60<<10, 0) == nil {
		t.Error("what is free is not given to somebody who has nothing")
	}
}

// Memory that is no slot counts as if it were one, and free slots make room for it.
func TestCharge(t *testing.T) {
	m := &memory{limit: 100 << 10}
	a, b := newQuota(m, 60<<10), newQuota(m, 100<<10)
	a.take(20<<10, 0).release(true)
	switch {
	case a.charge(61<<10, 0):
		t.Error("a charge over the quota")
	case !a.charge(60<<10, 0) || a.take(1, 0) != nil:
		t.Error("a charge of the whole quota leaves room for a slot, or is not taken")
	case b.charge(41<<10, 0):
		t.Error("a charge over the budget")
	case !b.charge(40<<10, 0):
		t.Error("no charge though the budget has room for it")
	}
	if used, lent := m.stats(); used != 100<<10 || lent != 100<<10 || a.outstanding() != 60<<10 {
		t.Errorf("%d bytes used, %d lent", used, lent)
	}
	a.discharge(60 << 10)
	b.discharge(40 << 10)
	if used, lent := m.stats(); used != 0 || lent != 0 || a.outstanding() != 0 || len(a.change) != 1 {
		t.Errorf("%d bytes used, %d lent after all was given back", used, lent)
	}
}

func TestSlotsAreReused(t *testing.T) {
	m := &memory{limit: 1 << 20}
	q := newQuota(m, 1<<20)
	s := q.take(300_000, 0)
	first := &s.buf[0]
	s.release(true)
	if s = q.take(290_000, 0); &s.buf[0] != first {
		t.Error("a free slot that fits was not taken")
	}
	s.release(true)
	if s = q.take(1000, 0); &s.buf[0] == first {
		t.Error("a slot far too large was taken")
	}
	if q.take(1_000_000, 0) == nil {
		t.Error("free slots stand in the way of a larger one")
	}
}

// The way from lease to release: whoever frees last, and also if nobody does.
func TestLease(t *testing.T) {
	m := &memory{limit: 1 << 20}
	q := newQuota(m, 1<<20)
	for _, size := range []int{1, 1000, 1024, 1025, 5000, 200_000} { // gRPC treats up to 1024 bytes differently
		batch := q.take(size, 0).lease(size)
		half := batch.Slice(0, (size+1)/2)
		batch.Free()
		if q.outstanding() == 0 {
			t.Errorf("%d bytes: released while a piece is out", size)
		}
		half.Free()
		if n := q.outstanding(); n != 0 {
			t.Errorf("%d bytes: %d still lent after the last piece", size, n)
		}
	}
	used, _ := m.stats()
	forget(q.take(5000, 0).lease(5000))
	for q.outstanding() > 0 { // the cleanup runs some time after the collection
		runtime.GC()
		runtime.Gosched()
	}
	if after, _ := m.stats(); after > used {
		t.Errorf("a lost slot still counts: %d bytes used, %d before", after, used)
	}
}

//go:noinline
func forget(b mem.Buffer) { _ = b.Slice(0, 10) }

// Many goroutines, random sizes: at the end the books are even.
func TestMemoryUnderLoad(t *testing.T) {
	m := &memory{limit: 1 << 20}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			q := newQuota(m, 1<<18)
			for range 2000 {
				n := 1 + r.IntN(100_000)
				if q.charge(int64(n), 0) {
					q.discharge(int64(n))
				}
				s := q.take(n, 0)
				if s == nil {
					continue
				}
				if used, _ := m.stats(); used > m.limit {
					t.Error("over the budget")
				}
				switch r.IntN(3) {
				case 0:
					s.release(true)
				case 1:
					s.release(false)
				default:
					b := s.lease(n)
					p := b.Slice(0, 1)
					b.Free()
					p.Free()
				}
			}
			if n := q.outstanding(); n != 0 {
				t.Errorf("%d bytes lent at the end", n)
			}
		})
	}
	wg.Wait()
	m.trim()
	if used, lent := m.stats(); used != 0 || lent != 0 {
		t.Errorf("%d bytes used, %d lent at the end", used, lent)
	}
}

func TestCollectorRunsOnceForMany(t *testing.T) {
	var c collector
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	since := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { c.collect(since) })
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if n := after.NumForcedGC - before.NumForcedGC; n != 1 {
		t.Errorf("%d collections for 50 that waited together", n)
	}
}
