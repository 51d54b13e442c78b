package resize

import (
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// axis says how one side of a picture becomes one side of the result, in the order in which the source comes: output j
// is made of source coordinates from lo on and stands at place j of the result, or at n−1−j when reverse is set.
type axis struct {
	lo, hi  int // the source coordinates that are needed
	n       int // outputs
	resized bool
	reverse bool
	taps    kernel.Taps // when resized; relative to lo
	longest int         // the largest count of taps
	vector  bool        // the kernels of AVX2 may be used

	// Scratch: weights of outputs, and the source coordinates where those begin and end.
	weights []float64
	spans   []span
}

type span struct{ begin, end int }

// planOutputs plans outputs from … to−1 of a side of in pixels that is resized to out. The side is mirrored before it
// is resized, and the outputs are flipped afterwards.
func (a *axis) planOutputs(m Method, in, out, from, to int, mirror, flip bool) {
	a.n, a.resized, a.reverse = to-from, in != out, mirror != flip
	switch {
	case a.resized && m.IsNearest():
		a.setNearest(m, in, out, from, to, mirror)
	case a.resized:
		a.setFiltered(m, in, out, from, to, mirror)
	case mirror:
		a.lo, a.hi = in-to, in-from
	default:
		a.lo, a.hi = from, to
	}
}

// setFiltered makes the taps. Mirroring a side before it is resized is resizing with mirrored taps, bit for bit, since
// sums of integers have no order.
func (a *axis) setFiltered(m Method, in, out, from, to int, mirror bool) {
	t, by := &a.taps, m.scalingOf(in, out)
	t.Stride = (by.mostWeights() + 3) &^ 3
	t.First, t.Count, t.Weights = pixel.Grow(t.First, a.n), pixel.Grow(t.Count, a.n), pixel.Grow(t.Weights, a.n*t.Stride)
	if a.vector && !mirror && m.isTriangle() && a.setTriangle(by, from) {
		return
	}
	bits := a.weighOutputs(m, by, from, to, out)
	a.lo, a.hi, a.longest = in, 0, 0
	for i := from; i < to; i++ {
		j := i - from
		s, w := a.spans[j], a.weights[j*t.Stride:]
		first, w := s.begin, w[:s.end-s.begin]
		if mirror {
			slices.Reverse(w)
			j, first = to-1-i, in-s.end
		}
		skipped, count := quantizeWeights(t.Weights[j*t.Stride:][:t.Stride], w, bits, by.support <= 1)
		first += skipped
		t.First[j], t.Count[j] = int32(first), int32(count)
		a.lo, a.hi, a.longest = min(a.lo, first), max(a.hi, first+count), max(a.longest, count)
	}
	a.shiftTaps()
}

// setTriangle is setFiltered by vectors, for Pillow's bilinear filter. It returns false where they cannot be used.
func (a *axis) setTriangle(by scaling, from int) (ok bool) {
	f := kernel.Triangle{In: by.in, Scale: by.scale, Reach: by.reach, Inverse: by.inverse}
	a.lo, a.longest, ok = f.Weigh(&a.taps, from)
	a.hi = a.lo + a.taps.Span
	return ok
}

// setNearest makes taps of one pixel each.
func (a *axis) setNearest(m Method, in, out, from, to int, mirror bool) {
	t := &a.taps
	t.Stride = 4
	t.First, t.Count, t.Weights = pixel.Grow(t.First, a.n), pixel.Grow(t.Count, a.n), pixel.Grow(t.Weights, a.n*t.Stride)
	clear(t.Weights)
	a.lo, a.hi, a.longest = in, 0, 1
	place := float64(in) / float64(out) * 0.5
	for i := range to {
		k := min(int(place), in-1)
		if place += float64(in) / float64(out); i < from { // Pillow adds up
			continue
		}
		if m.Tensor {
			k = m.tensorIndex(i, in, out)
		}
		j := i - from
		if mirror {
			j, k = to-1-i, in-1-k
		}
		t.First[j], t.Count[j], t.Weights[4*j] = int32(k), 1, 1<<kernel.WeightBits
		a.lo, a.hi = min(a.lo, k), max(a.hi, k+1)
	}
	a.shiftTaps()
}

// shiftTaps makes taps relative to lo.
func (a *axis) shiftTaps() {
	for j := range a.taps.First {
		a.taps.First[j] -= int32(a.lo)
	}
	a.taps.Span = a.hi - a.lo
}

// weighOutputs makes weights and spans of outputs from … to−1, and returns the weights' precision, which for tensors
// follows from all outputs.
func (a *axis) weighOutputs(m Method, by scaling, from, to, out int) (bits int) {
	stride := a.taps.Stride
	a.weights, a.spans = pixel.Grow(a.weights, (to-from+1)*stride), pixel.Grow(a.spans, to-from+1)
	low, high, largest := from, to, 0.0
	if m.Tensor {
		low, high = 0, out
	}
	for i := low; i < high; i++ {
		j := to - from // where nobody looks
		if from <= i && i < to {
			j = i - from
		}
		first, w, top := 0, a.weights[j*stride:][:stride], 0.0
		if m.Tensor || by.aliased {
			first, w, top = by.weighTorch(w, i)
			largest = max(largest, top)
		} else {
			first, w = by.weighPillow(w, i)
		}
		a.spans[j] = span{first, first + len(w)}
	}
	if m.Tensor {
		return tensorBits(largest)
	}
	return kernel.WeightBits
}

// quantizeWeights rounds weights to fixed point of so many bits, half away from zero, and leaves out zeros at the end.
// With trim it does so at the beginning too, which must not be done to filters with lobes: they have zeros inside, and
// beginnings would not ascend. Not all of w are small, since their sum is 1.
func quantizeWeights(dst []int32, w []float64, bits int, trim bool) (skipped, count int) {
	unit := float64(int(1) << bits)
	for _, x := range w {
		q := int32(float64(x*unit)+math.Copysign(0.5, x)) << (kernel.WeightBits - bits)
		if q == 0 && count == 0 && trim {
			skipped++
			continue
		}
		dst[count] = q
		count++
	}
	clear(dst[count:])
	for dst[count-1] == 0 {
		count--
	}
	return skipped, count
}
