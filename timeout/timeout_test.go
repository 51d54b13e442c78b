package timeout

import (
	"testing"
	"testing/synctest"
	"time"
)

// machine is a clock that goes on in jumps: as a process that was stopped sees it, a timer that is due fires once,
// however long that is over.
type machine struct {
	at      time.Time
	due     time.Time
	pending func()
}

func (m *machine) now() time.Time { return m.at }
func (m *machine) Stop() bool     { m.pending = nil; return true }

func (m *machine) after(d time.Duration, f func()) stopper {
	m.due, m.pending = m.at.Add(d), f
	return m
}

func (m *machine) jump(d time.Duration) {
	m.at = m.at.Add(d)
	if f := m.pending; f != nil && !m.at.Before(m.due) {
		m.pending = nil
		f()
	}
}

// What is stopped for an hour, at any moment, has as much of its time left as before, or a quarter more; a machine that
// is always late has twice.
func TestTimeStoppedDoesNotCount(t *testing.T) {
	const second, hour = time.Second, time.Hour
	for name, c := range map[string]struct {
		jumps []time.Duration
		calls int
	}{
		"it runs":               {[]time.Duration{second, second, second, second}, 1},
		"not yet":               {[]time.Duration{second, second, second, second / 2}, 0},
		"stopped at once":       {[]time.Duration{hour, second, second, second}, 0},
		"and goes on":           {[]time.Duration{hour, second, second, second, second}, 1},
		"stopped at the end":    {[]time.Duration{second, second, second, hour}, 0},
		"and is over then":      {[]time.Duration{second, second, second, hour, second}, 1},
		"a busy machine":        {[]time.Duration{second * 5 / 4, second * 5 / 4, second * 5 / 4, second * 5 / 4}, 1},
		"one that is late":      {[]time.Duration{2 * second, 2 * second, 2 * second, 2 * second, 2 * second, 2 * second, 2 * second}, 0},
		"for ever, but not yet": {[]time.Duration{2 * second, 2 * second, 2 * second, 2 * second, 2 * second, 2 * second, 2 * second, 2 * second}, 1},
	} {
		calls, m := 0, &machine{at: time.Unix(0, 0)}
		timer := after(m, 4*second, func() { calls++ })
		for _, d := range c.jumps {
			m.jump(d)
		}
		if calls != c.calls || timer.Stop() == (calls == 1) {
			t.Errorf("%s: called %d times", name, calls)
		}
	}
}

// By the clock of package time it is a timer like any other.
func TestAfterFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, fired := time.Now(), make(chan time.Time, 2)
		call := func() { fired <- time.Now() }
		timer := AfterFunc(10*time.Second, call)
		time.Sleep(9 * time.Second)
		timer.Reset(10 * time.Second)
		if at := <-fired; at.Sub(began) != 19*time.Second {
			t.Errorf("called after %s", at.Sub(began))
		}
		if timer.Stop() {
			t.Error("what was called is stopped")
		}
		stopped := AfterFunc(time.Second, call)
		if !stopped.Stop() || stopped.Stop() {
			t.Error("it is not stopped, or twice")
		}
		time.Sleep(time.Hour)
		if len(fired) != 0 {
			t.Error("what was stopped is called")
		}
	})
}
