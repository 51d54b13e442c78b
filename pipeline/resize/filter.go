package resize

import "math"

// The explicit conversions in this file forbid fusing a product into the sum that follows, so that weights have the
// same bits on every machine.

// filter is a resampling kernel: a function that is 0 for |x| ≥ support. When a side shrinks, the function is stretched
// by the scale, which is what antialiasing means here.
type filter struct {
	support float64
	// fill writes the function at x = (first+k−center+½)·inverse for every k of w and returns the sum.
	fill func(w []float64, first int, center, inverse float64) float64
}

var bilinear = filter{1, func(w []float64, first int, center, inverse float64) (sum float64) {
	for k := range w {
		x := 1 - math.Abs(float64((float64(first+k)-center+0.5)*inverse))
		if x < 0 {
			x = 0
		}
		w[k] = x
		sum += x
	}
	return sum
}}

// scaling is a filter set up for a side of in pixels that becomes out.
type scaling struct {
	filter
	in             int
	scale          float64 // in ÷ out
	reach, inverse float64 // the stretched support; 1 ÷ stretch
	aliased        bool    // nothing is stretched
}

func (f filter) scaleTo(in, out int) scaling {
	scale := float64(in) / float64(out)
	stretch := max(scale, 1)
	return scaling{f, in, scale, float64(f.support * stretch), 1 / stretch, false}
}

// mostWeights is how many weights an output has at most.
func (s scaling) mostWeights() int { return 2*int(math.Ceil(s.reach)) + 1 }

// weighPillow returns the weights of output i, in buf, and the source coordinate of the first, as Pillow's
// precompute_coeffs computes them: every weight is divided by their sum.
func (s scaling) weighPillow(buf []float64, i int) (first int, w []float64) {
	center := float64((float64(i) + 0.5) * s.scale)
	first = max(int(center-s.reach+0.5), 0)
	w = buf[:min(int(center+s.reach+0.5), s.in)-first]
	sum := s.fill(w, first, center, s.inverse)
	for k := range w {
		w[k] /= sum
	}
	return first, w
}
