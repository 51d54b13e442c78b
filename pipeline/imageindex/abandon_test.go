package imageindex

import (
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
)

// A store whose disk stands still is left at once, and whoever waits for it is let go. Its memory comes back: at once,
// or with the call that needs it.
func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		hold := func(n int64) { held.Add(n) }
		idle := opened(t, Options{Dir: t.TempDir(), Hold: hold})
		fill(idle)
		if idle.Abandon(); held.Load() != 0 || found(t, idle) != 0 {
			t.Errorf("%d bytes are held", held.Load())
		}
		dir, gate := t.TempDir(), make(chan struct{})
		o := behindGate(dir, gate)
		o.Hold = hold
		s := opened(t, o)
		for range 10 {
			fill(s)
			synctest.Wait() // it writes the first ones
		}
		kept := make(chan bool)
		go func() { kept <- s.PutAll(t.Context(), 0, digestOf(0), wantOf(0)) }()
		synctest.Wait()
		if s.Abandon(); <-kept {
			t.Error("something was kept in a store that was left")
		}
		if held.Load() == 0 {
			t.Error("memory was given back that is being written")
		}
		close(gate)
		s.running.Wait()
		if held.Load() != 0 {
			t.Errorf("%d bytes are held", held.Load())
		}
		s.Abandon()
		s.Close()
		if held.Load() != 0 {
			t.Errorf("%d bytes are held after it was closed", held.Load())
		}
	})
}

// Memory is held for places, and for what is gathered while it is.
func TestHold(t *testing.T) {
	held := int64(0)
	s := opened(t, Options{Dir: t.TempDir(), pendingBytes: 1 << 20, Hold: func(n int64) { held += n }})
	for _, step := range []struct {
		what string
		do   func()
		want int64 // besides places
	}{
		{"opened", func() {}, 0},
		{"gathering", func() { fill(s) }, 1 << 20},
		{"gathering more", func() { fill(s) }, 1 << 20},
		{"written", s.flushPending, 0},
		{"closed", s.Close, 0},
	} {
		if step.do(); held != step.want+s.table.held() {
			t.Errorf("%s: %d bytes are held, not %d and %d of places", step.what, held, step.want, s.table.held())
		}
		if grown := s.table.held() > newPlaces(samples).held(); grown != (step.what != "opened" && step.what != "closed") {
			t.Errorf("%s: places have %d bytes", step.what, s.table.held())
		}
	}
}

// Lost is what no file has: not yet, or never.
func TestLost(t *testing.T) {
	bytes := int64(0)
	for i := range samples {
		bytes += int64(len(wantOf(i)))
	}
	check := func(what string, s *Cache, records int, want int64) {
		t.Helper()
		if n, bytes := s.Lost(); n != records || bytes != want {
			t.Errorf("%s: %d records of %d bytes, not %d of %d", what, n, bytes, records, want)
		}
	}
	s := opened(t, Options{Dir: t.TempDir()})
	fill(s)
	check("gathered", s, samples, bytes)
	s.Put(3, digestOf(3), nil)
	s.Close()
	check("written", s, 0, 0)
	s = opened(t, Options{Dir: t.TempDir(), create: func(string) (writer, error) { return nil, syscall.EROFS }})
	fill(s)
	s.Close()
	check("not written", s, samples, bytes)
}
