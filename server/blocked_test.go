package server

import "testing"

// A send is too long after it was there at a tick and at four more. However long ago it began, after a node was
// stopped: it has four ticks.
func TestBlockedSendIsCountedByTicks(t *testing.T) {
	const hours = int64(3600e9)
	for name, sends := range map[string]struct {
		since []int64
		want  bool
	}{
		"none":             {[]int64{0, 0, 0, 0, 0, 0}, false},
		"one, too long":    {[]int64{1, 1, 1, 1, 1}, true},
		"not yet":          {[]int64{1, 1, 1, 1}, false},
		"another each":     {[]int64{1, 2, 3, 4, 5, 6, 7}, false},
		"done in between":  {[]int64{1, 1, 1, 0, 1, 1, 1}, false},
		"a stopped node":   {[]int64{-hours, -hours, hours, hours}, false},
		"and after that":   {[]int64{-hours, hours, hours, hours, hours, hours}, true},
		"since long, once": {[]int64{-hours}, false},
	} {
		var b blockedSend
		got := false
		for _, since := range sends.since {
			got = got || b.isStalled(since)
		}
		if got != sends.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
