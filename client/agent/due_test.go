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

// A want is due by how far ahead of the loop it is and the loop's pace, which is known after a few steps.
func TestDue(t *testing.T) {
	n := &fakeNode{dues: make(chan time.Time, 1), pulses: make(chan *pb.Pulse, 1)}
	c := start(t, n)
	c.open(8, nil)
	ask(c, want{id: 1, count: 8, ahead: 3})
	if due := <-n.dues; !due.IsZero() {
		t.Errorf("due %s before anything is known of the loop", due)
	}
	// Steps of 150 s of which the GPU stood still for 50.
	c.send(c.loader, pulsePacket(-1, [5]float64{0, 150, 60, 50, 0}, [5]float64{1, 150, 60, 50, 0}, [5]float64{2, 150, 60, 50, 0}, [5]float64{3, 150, 60, 50, 0}))
	<-n.pulses
	began := time.Now()
	ask(c, want{id: 2, count: 8, ahead: 3})
	if due := <-n.dues; due.Before(began.Add(300*time.Second)) || due.After(time.Now().Add(300*time.Second)) {
		t.Errorf("due in %s, want 300 s", due.Sub(began))
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
