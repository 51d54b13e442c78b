package bulkhead

import (
	"testing"
	"time"
)

// A time in which the process did not run says nothing about storage, unless it seems to be the rule: then the machine
// is busy.
func TestSuspendedTimeDoesNotCount(t *testing.T) {
	const every = 50 * time.Millisecond
	at := time.Now()
	r := ran{last: at}
	look := func(after time.Duration) time.Duration {
		at = at.Add(after)
		return r.suspended(at, every)
	}
	for _, step := range []struct{ after, counts time.Duration }{
		{every, every},
		{400 * time.Millisecond, 400 * time.Millisecond},
		{40 * time.Second, every},
		{every, every},
		{40 * time.Second, every},
		{40 * time.Second, 40 * time.Second},
		{time.Second, every},
	} {
		if got := step.after - look(step.after); got != step.counts {
			t.Errorf("%s behind the last look count as %s, not %s", step.after, got, step.counts)
		}
	}
}
