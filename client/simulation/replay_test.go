package simulation

import (
	"testing"
)

// TestSameSeedSameTrace runs seeds twice: the same faults, wants and batches at the same nanoseconds.
func TestSameSeedSameTrace(t *testing.T) {
	calm := &calm{t: t, runs: map[shape]*stream{}}
	for s := uint64(1); s <= *replays; s++ {
		a, b := trace(t, s, calm), trace(t, s, calm)
		if i := firstDifference(a, b); i >= 0 {
			t.Errorf("seed %d differs after %d of %d events:\n%v\n%v", s, i, len(a), around(a, i), around(b, i))
		}
	}
}

func trace(t *testing.T, seed uint64, calm *calm) []event {
	s := newScenario(seed)
	w, err := play(t, s, calm.run(s.shape).state)
	if err != nil {
		t.Fatal(err)
	}
	return w.events()
}

// firstDifference is where two traces part; -1: nowhere.
func firstDifference(a, b []event) int {
	for i := range max(len(a), len(b)) {
		if at(a, i) != at(b, i) {
			return i
		}
	}
	return -1
}

func at(trace []event, i int) event {
	if i < len(trace) {
		return trace[i]
	}
	return event{what: "the end"}
}

// around is what happened before an event and after.
func around(trace []event, i int) []event { return trace[max(0, i-3):min(len(trace), i+3)] }
