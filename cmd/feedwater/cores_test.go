package main

import (
	"runtime"
	"testing"
)

// TestCores: one to begin with, one more for each second that all were busy, never more than half; all for a pipeline.
func TestCores(t *testing.T) {
	before := runtime.GOMAXPROCS(8)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "")
	c := newCores()
	for _, step := range []struct {
		busy float64
		want int
	}{{0, 1}, {0.9, 1}, {0.99, 2}, {1.5, 2}, {1.95, 3}, {3, 4}, {4, 4}, {0, 4}} {
		c.addIfBusy(step.busy)
		if n := runtime.GOMAXPROCS(0); n != step.want {
			t.Fatalf("%d cores after %.2f were busy, not %d", n, step.busy, step.want)
		}
	}
	c.takeAll()
	if n := runtime.GOMAXPROCS(0); n != 8 {
		t.Errorf("%d cores for a pipeline", n)
	}
	c.addIfBusy(8)
	if n := runtime.GOMAXPROCS(0); n != 8 {
		t.Errorf("%d cores afterwards", n)
	}
}

// TestCoresAsTold: who sets GOMAXPROCS gets that.
func TestCoresAsTold(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "3")
	newCores().addIfBusy(3)
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d cores", n)
	}
}
