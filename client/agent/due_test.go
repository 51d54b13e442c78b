package agent

import (
	"math"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// ask sends a want and waits for its answer.
func ask(c *trainer, w want) {
	c.send(c.loader, wantPacket(w))
	c.done(w)
}

// A want is due by how far ahead of the loop it is and what its steps took, which is known after a few.
func TestDue(t *testing.T) {
	n := &fakeNode{dues: make(chan time.Time, 1), pulses: make(chan *pb.Pulse, 1)}
	c := start(t, n)
	c.open(8, nil)
	began := time.Now()
	ask(c, want{id: 1, count: 8, ahead: 30})
	if due := <-n.dues; due.Before(began.Add(3*time.Second)) || due.After(time.Now().Add(3*time.Second)) {
		t.Errorf("due in %s before anything is known of the loop, want 3 s", due.Sub(began))
	}
	// Steps of 150 s of which the GPU stood still for 50.
	c.send(c.loader, pulsePacket(-1, [5]float64{0, 150, 60, 50, 0}, [5]float64{1, 150, 60, 50, 0}, [5]float64{2, 150, 60, 50, 0}, [5]float64{3, 150, 60, 50, 0}))
	<-n.pulses
	began = time.Now()
	ask(c, want{id: 2, count: 8, ahead: 3})
	if due := <-n.dues; due.Before(began.Add(315*time.Second)) || due.After(time.Now().Add(315*time.Second)) {
		t.Errorf("due in %s, want 315 s", due.Sub(began))
	}
	fast := make([][5]float64, 16)
	for i := range fast {
		fast[i] = [5]float64{float64(4 + i), 0.1, 0, 0, 0}
	}
	c.send(c.loader, pulsePacket(-1, fast...))
	<-n.pulses
	ask(c, want{id: 3, count: 8, ahead: 4})
	if due := <-n.dues; due.Before(began.Add(315 * time.Second)) {
		t.Errorf("due in %s, before the batch that comes before it", due.Sub(began))
	}
	ask(c, want{id: 4, count: 8})
	if due := time.Until(<-n.dues); due > 0 {
		t.Errorf("due in %s, and the loop waits for it", due)
	}
}

// Nodes are told which step of the job a batch is for.
func TestStep(t *testing.T) {
	n := &fakeNode{steps: make(chan uint64, 2)}
	c := start(t, n)
	c.open(8, nil)
	for i, step := range []uint64{0, 3<<32 | 96} {
		ask(c, want{id: uint64(i + 1), count: 8, step: step})
		if got := <-n.steps; got != step {
			t.Errorf("step %d, want %d", got, step)
		}
	}
}

// A pulse of nonsense leaves dues and windows what they may be.
func TestLyingPulse(t *testing.T) {
	n := &fakeNode{dues: make(chan time.Time, 1), pulses: make(chan *pb.Pulse, 1)}
	c := start(t, n)
	c.open(8, nil)
	id := uint64(0)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e-300, 1e300} {
		steps := make([][5]float64, 0, 40)
		for i := range 40 {
			steps = append(steps, [5]float64{float64(i), 0.1, x, x, x}, [5]float64{float64(i), x, x, x, x})
		}
		c.send(c.loader, pulsePacket(x, steps...))
		<-n.pulses
		id++
		ask(c, want{id: id, count: 8, ahead: math.MaxUint64})
		if due := time.Until(<-n.dues); due > 2*time.Hour {
			t.Errorf("%v: due in %s", x, due)
		}
	}
}
