package augment

import (
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
)

// axis says how one side of a picture becomes one side of the result, in the order in which the source comes: output j is made
// of source coordinates from lo on and stands at place j of the result, or at n−1−j when reverse is set.
type axis struct {
	lo, hi  int // the source coordinates that are needed
	n       int // outputs
	resized bool
	reverse bool
	taps    kernel.Taps // when resized; relative to lo

	weights []float64 // scratch
}

// set plans outputs from … to−1 of a side of in pixels that is resized to out. The side is mirrored before it is resized, and
// the outputs are flipped afterwards.
func (a *axis) set(f filter, in, out, from, to int, mirror, flip bool) {
	a.n, a.resized, a.reverse = to-from, in != out, mirror != flip
	switch {
	case a.resized:
		a.calculate(f, in, out, from, to, mirror)
	case mirror:
		a.lo, a.hi = in-to, in-from
	default:
		a.lo, a.hi = from, to
	}
}

// calculate makes the taps. Mirroring a side before it is resized is resizing with mirrored taps, bit for bit, since sums of integers
// have no order.
func (a *axis) calculate(f filter, in, out, from, to int, mirror bool) {
	t, by := &a.taps, f.scaling(in, out)
	t.Stride = (by.most() + 3) &^ 3
	t.First, t.Count, t.Weights = grown(t.First, a.n), grown(t.Count, a.n), grown(t.Weights, a.n*t.Stride)
	a.weights = grown(a.weights, t.Stride)
	a.lo, a.hi = in, 0
	for i := from; i < to; i++ {
		j := i - from
		first, w := by.weights(a.weights, i)
		if mirror {
			slices.Reverse(w)
			j, first = to-1-i, in-first-len(w)
		}
		skipped, count := quantize(t.Weights[j*t.Stride:][:t.Stride], w)
		first += skipped
		t.First[j], t.Count[j] = int32(first), int32(count)
		a.lo, a.hi = min(a.lo, first), max(a.hi, first+count)
	}
	for j := range t.First {
		t.First[j] -= int32(a.lo)
	}
	t.Span = a.hi - a.lo
}

// quantize rounds weights to fixed point, half away from zero, and leaves out zeros at both ends. Not all of w are small, since
// their sum is 1.
func quantize(dst []int32, w []float64) (skipped, count int) {
	const one = 1 << kernel.WeightBits
	for _, x := range w {
		q := int32(x*one + math.Copysign(0.5, x))
		if q == 0 && count == 0 {
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

// grown returns s with length n; its contents are undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
