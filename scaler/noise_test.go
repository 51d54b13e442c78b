package scaler_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A demand that is up to 15 % more or less every 15 s, as nodes read it off the latest 30 s, changes the number of nodes at
// most four times in 20 minutes.
func TestDemandThatChanges(t *testing.T) {
	const seeds, mean, slot = 8, 5.1, 15 * time.Second
	most := 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorldOf(t, func(w *world) { w.follow(6, map[string]uint32{"x": 6}) })
			random := rand.New(rand.NewPCG(seed, 1))
			now, before := 0.0, 0.0
			step := func() int {
				now, before = random.Float64()*0.3-0.15, now
				needed := math.Ceil(1.15 * mean * (1 + (now+before)/2))
				w.follow(w.metric(), map[string]uint32{"x": uint32(needed)})
				time.Sleep(slot)
				return w.metric()
			}
			time.Sleep(slot)
			for range 12 {
				step()
			}
			changes, last := 0, step()
			for range int(20 * time.Minute / slot) {
				n := step()
				if n != last {
					changes++
				}
				last = n
			}
			most = max(most, changes)
		})
	}
	t.Logf("%d changes at most", most)
	if most > 4 {
		t.Errorf("%d changes", most)
	}
}

// follow has so many nodes, which say that of jobs.
func (w *world) follow(n int, jobs map[string]uint32) {
	for i := range 12 {
		addr := string(rune('a' + i))
		w.mu.Lock()
		there := w.listeners[addr] != nil
		if there && i >= n {
			delete(w.listeners, addr)
		}
		w.mu.Unlock()
		if i < n && !there {
			w.node(addr)
		}
		if i < n {
			w.fakes[addr].set(jobs, false)
		}
	}
}
