package scaler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/proto/externalscaler"
)

// When the last trainer leaves KEDA hears of it at once, and not with the next number.
func TestLastTrainerLeaves(t *testing.T) {
	for after := range 20 { // whatever second of a period it is
		synctest.Test(t, func(t *testing.T) {
			var a *fakeNode
			w := newWorldOf(t, func(w *world) {
				a = w.node("a")
				a.set(map[string]uint32{"x": 1}, false)
			})
			stream, err := w.keda.StreamIsActive(t.Context(), &externalscaler.ScaledObjectRef{})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := stream.Recv(); err != nil || !r.Result {
				t.Fatalf("with a trainer %v, %v", r, err)
			}
			time.Sleep(time.Duration(after) * time.Second)
			a.set(nil, false)
			left := time.Now()
			if r, err := stream.Recv(); err != nil || r.Result {
				t.Fatalf("without one %v, %v", r, err)
			}
			if took := time.Since(left); took > 3*time.Second {
				t.Errorf("%d s later: told after %s", after, took)
			}
			if n := w.metric(); n != 1 {
				t.Errorf("%d nodes are wanted, want the one of the last 120 s", n)
			}
		})
	}
}

// What a job that ends has asked for is held for 120 s, and not for a period or two more.
func TestJobThatEndsIsHeldForTwoMinutes(t *testing.T) {
	for after := range 20 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorldOf(t, func(w *world) {
				for _, addr := range []string{"a", "b", "c", "d", "e", "f"} {
					w.node(addr).set(map[string]uint32{"x": 5, "y": 1}, false)
				}
			})
			time.Sleep(time.Minute + time.Duration(after)*time.Second)
			for _, addr := range []string{"a", "b", "c", "d", "e", "f"} {
				w.fakes[addr].set(map[string]uint32{"y": 1}, false)
			}
			ended := time.Now()
			for w.metric() == 6 {
				time.Sleep(time.Second)
			}
			if took := time.Since(ended); w.metric() != 1 || took < 115*time.Second || took > 132*time.Second {
				t.Errorf("%d s later: %d nodes after %s", after, w.metric(), took)
			}
		})
	}
}

// Nodes that come have seen too few steps of a slow job. It is fed, as the others know, so what they say of the one that
// waits is not waited for.
func TestSlowJobKeepsNoOtherWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			w.node("a").set(map[string]uint32{"fed": 1, "waits": 2}, false)
		})
		time.Sleep(time.Second)
		for w.metric() < 3 {
			time.Sleep(100 * time.Millisecond)
		}
		for _, addr := range []string{"b", "c"} {
			w.node(addr).set(map[string]uint32{"fed": starved, "waits": 5}, false)
		}
		began := time.Now()
		for w.metric() < 6 {
			if time.Since(began) > 8*time.Second {
				t.Fatalf("%d nodes after %s", w.metric(), time.Since(began))
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// Where no node is listed, those that answer count on: trainers have them. A number is not made of a certificate that
// has ended, or of files that cannot be read. Once they answer no more either, there are none.
func TestNodesThatAreListedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []string{"a", "b", "c"}
		w := newWorldOf(t, func(w *world) {
			for _, addr := range nodes {
				w.node(addr).set(map[string]uint32{"x": 3}, false)
			}
		})
		time.Sleep(6 * time.Minute) // what was asked for is there for so long that it is taken for known
		w.mu.Lock()
		for _, addr := range nodes {
			delete(w.listeners, addr)
		}
		w.mu.Unlock()
		for range 300 {
			time.Sleep(time.Second)
			active, err := w.scaler.IsActive(t.Context(), nil)
			if n := w.metric(); n != 3 || err != nil || !active.Result {
				t.Fatalf("%d nodes, active %v, %v: the trainers have three", n, active, err)
			}
		}
		for _, addr := range nodes {
			w.fakes[addr].lose()
		}
		time.Sleep(3 * time.Minute)
		if n := w.metric(); n != 0 {
			t.Errorf("%d nodes after all went", n)
		}
	})
}

// A node whose call ends while it is not listed is not called again.
func TestNodeThatLeavesUnlisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) { w.node("a").set(map[string]uint32{"x": 1}, false) })
		time.Sleep(time.Minute)
		w.mu.Lock()
		delete(w.listeners, "a")
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
		w.fakes["a"].end()
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := w.dialed["a"]; n != 1 {
			t.Errorf("it was called %d times", n)
		}
	})
}

// Nodes that take longer than five minutes to come are waited for: engines have them in a queue, and whoever is taken
// out of that loses the place in it.
func TestNodesThatTakeLongToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			for _, addr := range []string{"a", "b"} {
				w.node(addr).set(map[string]uint32{"x": 100}, false)
			}
		})
		most := 0
		for range 20 * 60 {
			time.Sleep(time.Second)
			n := w.metric()
			if n < most {
				t.Fatalf("%d nodes after %d were asked for", n, most)
			}
			most = n
		}
		if most != 100 {
			t.Errorf("%d nodes, want 100", most)
		}
	})
}

// Of a job that waits, and of which nobody knows for what, no more nodes are guessed than four times those that are there.
func TestGuessesWaitForNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			w.node("a").set(map[string]uint32{"x": starved}, false)
			w.node("b").set(map[string]uint32{"x": starved}, false)
		})
		for range 20 * 60 {
			time.Sleep(time.Second)
			if n := w.metric(); n > 8 {
				t.Fatalf("%d nodes, and two are there", n)
			}
		}
		if n := w.metric(); n != 8 {
			t.Errorf("%d nodes, want 8", n)
		}
	})
}
