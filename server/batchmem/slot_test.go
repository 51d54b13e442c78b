package batchmem

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
	m := &Memory{Limit: 100 << 10}
	a, b := NewQuota(m, 60<<10), NewQuota(m, 1<<40)
	if a.Fits(61<<10) || !a.Fits(60<<10) || b.Fits(101<<10) || !b.Fits(100<<10) || a.Fits(-1) || b.Fits(math.MaxInt) {
		t.Error("fits does not follow the limits")
	}
	s := a.TakeSlot(50<<10, 0)
	if s == nil || len(s.Bytes) != 52<<10 {
		t.Fatal("no slot within the budget, or none of whole steps")
	}
	if a.TakeSlot(12<<10, 0) != nil {
		t.Error("a slot over the quota")
	}
	if b.TakeSlot(49<<10, 0) != nil {
		t.Error("a slot over the budget")
	}
	u := b.TakeSlot(48<<10, 0)
	if u == nil {
		t.Fatal("no slot though the budget has room for it")
	}
	s.Release(true)
	u.Release(false)
	if used, lent := m.CountBytes(); used != 52<<10 || lent != 0 || a.CountLent() != 0 || b.CountLent() != 0 {
		t.Errorf("%d bytes used, %d lent after all were returned", used, lent)
	}
	m.TrimFree()
	if used, _ := m.CountBytes(); used != 0 {
		t.Errorf("%d bytes used after a trim", used)
	}
}

// Whoever comes later finds memory, however much those before him want, and who counts less has less; what is free one
// want may have.
func TestSharesOfMemory(t *testing.T) {
	m := &Memory{Limit: 1000 << 10}
	hold := func(weight float64) (held int64, q *Quota) {
		q = NewQuota(m, m.Limit).JoinBudget(&Budget{Weight: weight})
		for q.TakeSlot(4<<10, 0) != nil {
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
	if !q.ChargeBytes(100<<10, held<<10) || q.ChargeBytes(4<<10, 0) {
		t.Error("his only want gets what is free, a further one gets nothing")
	}
	if NewQuota(m, m.Limit).JoinBudget(&Budget{Weight: 0.01}).TakeSlot(60<<10, 0) == nil {
		t.Error("what is free is not given to somebody who has nothing")
	}
}

// Memory that is no slot counts as if it were one, and free slots make room for it.
func TestCharge(t *testing.T) {
	m := &Memory{Limit: 100 << 10}
	a, b := NewQuota(m, 60<<10), NewQuota(m, 100<<10)
	a.TakeSlot(20<<10, 0).Release(true)
	switch {
	case a.ChargeBytes(61<<10, 0):
		t.Error("a charge over the quota")
	case !a.ChargeBytes(60<<10, 0) || a.TakeSlot(1, 0) != nil:
		t.Error("a charge of the whole quota leaves room for a slot, or is not taken")
	case b.ChargeBytes(41<<10, 0):
		t.Error("a charge over the budget")
	case !b.ChargeBytes(40<<10, 0):
		t.Error("no charge though the budget has room for it")
	}
	if used, lent := m.CountBytes(); used != 100<<10 || lent != 100<<10 || a.CountLent() != 60<<10 {
		t.Errorf("%d bytes used, %d lent", used, lent)
	}
	a.DischargeBytes(60 << 10)
	b.DischargeBytes(40 << 10)
	if used, lent := m.CountBytes(); used != 0 || lent != 0 || a.CountLent() != 0 || len(a.Changed) != 1 {
		t.Errorf("%d bytes used, %d lent after all was given back", used, lent)
	}
}

func TestSlotsAreReused(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, 1<<20)
	s := q.TakeSlot(300_000, 0)
	first := &s.Bytes[0]
	s.Release(true)
	if s = q.TakeSlot(290_000, 0); &s.Bytes[0] != first {
		t.Error("a free slot that fits was not taken")
	}
	s.Release(true)
	if s = q.TakeSlot(1000, 0); &s.Bytes[0] == first {
		t.Error("a slot far too large was taken")
	}
	if q.TakeSlot(1_000_000, 0) == nil {
		t.Error("free slots stand in the way of a larger one")
	}
}

// The way from lease to release: whoever frees last, and also if nobody does.
func TestLease(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, 1<<20)
	for _, size := range []int{1, 1000, 1024, 1025, 5000, 200_000} { // gRPC treats up to 1024 bytes differently
		batch := q.TakeSlot(size, 0).LeaseBytes(size)
		half := batch.Slice(0, (size+1)/2)
		batch.Free()
		if q.CountLent() == 0 {
			t.Errorf("%d bytes: released while a piece is out", size)
		}
		half.Free()
		if n := q.CountLent(); n != 0 {
			t.Errorf("%d bytes: %d still lent after the last piece", size, n)
		}
	}
	used, _ := m.CountBytes()
	forget(q.TakeSlot(5000, 0).LeaseBytes(5000))
	for q.CountLent() > 0 { // the cleanup runs some time after the collection
		runtime.GC()
		runtime.Gosched()
	}
	if after, _ := m.CountBytes(); after > used {
		t.Errorf("a lost slot still counts: %d bytes used, %d before", after, used)
	}
}

//go:noinline
func forget(b mem.Buffer) { _ = b.Slice(0, 10) }

// Many goroutines, random sizes: at the end the books are even.
func TestMemoryUnderLoad(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			q := NewQuota(m, 1<<18)
			for range 2000 {
				n := 1 + r.IntN(100_000)
				if q.ChargeBytes(int64(n), 0) {
					q.DischargeBytes(int64(n))
				}
				s := q.TakeSlot(n, 0)
				if s == nil {
					continue
				}
				if used, _ := m.CountBytes(); used > m.Limit {
					t.Error("over the budget")
				}
				switch r.IntN(3) {
				case 0:
					s.Release(true)
				case 1:
					s.Release(false)
				default:
					b := s.LeaseBytes(n)
					p := b.Slice(0, 1)
					b.Free()
					p.Free()
				}
			}
			if n := q.CountLent(); n != 0 {
				t.Errorf("%d bytes lent at the end", n)
			}
		})
	}
	wg.Wait()
	m.TrimFree()
	if used, lent := m.CountBytes(); used != 0 || lent != 0 {
		t.Errorf("%d bytes used, %d lent at the end", used, lent)
	}
}

func TestCollectorRunsOnceForMany(t *testing.T) {
	var c Collector
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	since := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { c.CollectSince(since) })
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if n := after.NumForcedGC - before.NumForcedGC; n != 1 {
		t.Errorf("%d collections for 50 that waited together", n)
	}
}
