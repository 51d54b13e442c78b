package history

import (
	"math"
	"strconv"
	"time"
)

const (
	// Every is the time between two points of a figure.
	Every = 5 * time.Second
	// Slots is how many points are kept: ten minutes.
	Slots = 120
)

// ring has the latest points of some figures, one of each per slot. Slots that nothing was put in are unknown.
type ring struct {
	points [][Slots]float32 // by figure
	latest int64            // slot that was put last
}

func newRing(figures int) *ring {
	r := &ring{points: make([][Slots]float32, figures)}
	for i := range r.points {
		for k := range r.points[i] {
			r.points[i][k] = unknown
		}
	}
	return r
}

var unknown = float32(math.NaN())

// put takes the figures of a slot. Slots only grow.
func (r *ring) put(slot int64, figures []float64) {
	if slot < r.latest {
		return
	}
	for skipped := max(r.latest+1, slot-Slots+1); skipped < slot; skipped++ {
		for i := range r.points {
			r.points[i][skipped%Slots] = unknown
		}
	}
	for i, v := range figures {
		r.points[i][slot%Slots] = float32(v)
	}
	r.latest = slot
}

// upTo are a figure's points, oldest first, the last one that of slot.
func (r *ring) upTo(slot int64, figure int) Points {
	all := make(Points, Slots)
	for i := range all {
		at := slot - Slots + 1 + int64(i)
		all[i] = unknown
		if at <= r.latest && at > r.latest-Slots {
			all[i] = r.points[figure][at%Slots]
		}
	}
	return all
}

// Points are a figure over time, NaN where it is unknown, which is null in JSON.
type Points []float32

// MarshalJSON writes four digits of each.
func (p Points) MarshalJSON() ([]byte, error) {
	text := append(make([]byte, 0, 8*len(p)), '[')
	for i, v := range p {
		if i > 0 {
			text = append(text, ',')
		}
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendFloat(text, f, 'g', 4, 32)
		}
	}
	return append(text, ']'), nil
}
