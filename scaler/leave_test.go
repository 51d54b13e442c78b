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
