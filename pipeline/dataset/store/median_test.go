package store

import (
	"testing"
	"time"
)

// TestSlowAfter: of sizes that are known, those between them and beyond.
func TestSlowAfter(t *testing.T) {
	var s server
	if got := s.slowAfter(1000); got != 0 {
		t.Errorf("%s with nothing known", got)
	}
	for range leastKnown {
		s.tell(1000, 10*time.Millisecond)
		s.tell(100_000, 100*time.Millisecond)
	}
	short, long := s.slowAfter(1000), s.slowAfter(100_000)
	if short < 20*time.Millisecond || short > 40*time.Millisecond || long < 200*time.Millisecond || long > 400*time.Millisecond {
		t.Errorf("%s, %s: not three times what they took", short, long)
	}
	for n, want := range map[int]time.Duration{1: short, 1020: short, 2000: long, 40_000: long, 200_000: 2 * long, 400_000: 4 * long} {
		if got := s.slowAfter(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
