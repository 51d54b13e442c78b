package resize

import (
	"math"
	"slices"
)

// What filter.go says of fused products holds here too.

// The filters besides bilinear, by torchvision's names. Nearest ones are none: they take one pixel and weigh nothing.
var (
	box     = filter{0.5, sampleFilter(func(x float64) float64 { return indicate(-0.5 < x && x <= 0.5) })}
	hamming = filter{1, sampleFilter(hammingAt)}
	bicubic = filter{2, sampleFilter(func(x float64) float64 { return keysKernel(x, -0.5) })}
	lanczos = filter{3, sampleFilter(lanczosAt)}
	// bicubicAliased is what torch interpolates with where nothing is stretched.
	bicubicAliased = filter{2, sampleFilter(func(x float64) float64 { return keysKernel(x, -0.75) })}
)

// sampleFilter is a filter's fill by its function.
func sampleFilter(f func(x float64) float64) func(w []float64, first int, center, inverse float64) float64 {
	return func(w []float64, first int, center, inverse float64) (sum float64) {
		for k := range w {
			x := f(float64((float64(first+k) - center + 0.5) * inverse))
			w[k] = x
			sum += x
		}
		return sum
	}
}

func indicate(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// keysKernel is Keys' kernel, in the order in which Pillow and torch compute it.
func keysKernel(x, a float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1:
		return float64((float64((a+2)*x)-(a+3))*x*x) + 1
	case x < 2:
		return float64((float64((float64((x-5)*x)+8)*x) - 4) * a)
	}
	return 0
}

// lanczosAt is sinc(x)·sinc(x/3) by a single sine: with t = πx/3 and s = sin t, sin πx is s·(3−4s²).
func lanczosAt(x float64) float64 {
	x = math.Abs(x)
	if x == 0 {
		return 1
	}
	if x >= 3 {
		return 0
	}
	t := float64(x * (math.Pi / 3))
	s := sineOf(t)
	q := float64(s * s)
	return float64(q*(3-float64(4*q))) / float64(3*float64(t*t))
}

// hammingAt has the constants 0.54 and 0.46 of float32, as Pillow does.
func hammingAt(x float64) float64 {
	x = math.Abs(x)
	if x == 0 {
		return 1
	}
	if x >= 1 {
		return 0
	}
	x = float64(x * math.Pi)
	half := sineOf(float64(x * 0.5))
	cosine := 1 - float64(2*float64(half*half))
	return float64(sineOf(x) / x * (float64(float32(0.54)) + float64(float64(float32(0.46))*cosine)))
}

// sines are the Taylor series' coefficients of sin(x)/x in x², from the highest used to the one of x².
var sines = [...]float64{
	1.0 / 51090942171709440000, -1.0 / 121645100408832000, 1.0 / 355687428096000, -1.0 / 1307674368000,
	1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6,
}

// sineOf returns sin x for 0 ≤ x ≤ π, within about a unit of the last place, with the same bits on every machine.
func sineOf(x float64) float64 {
	const piLow = 1.2246467991473532e-16 // π minus its float64
	if x > math.Pi/2 {
		x = math.Pi - x + piLow
	}
	q, s := float64(x*x), 0.0
	for _, c := range sines {
		s = float64((s + c) * q)
	}
	return x + float64(s*x)
}

// weighTorch is weights, or aliasedWeights, and the largest weight as torch finds it.
func (s scaling) weighTorch(buf []float64, i int) (first int, w []float64, largest float64) {
	if s.aliased {
		return s.aliasedWeights(buf, i)
	}
	first, w = s.weighPillow(buf, i)
	return first, w, slices.Max(w)
}

// aliasedWeights is weights for filters that are not stretched: 2·support taps wherever they lie, and those outside of
// the side count for the pixel at its end. largest is that of the weights while they gather.
func (s scaling) aliasedWeights(buf []float64, i int) (first int, w []float64, largest float64) {
	center, count := float64(s.scale*(float64(i)+0.5)), 2*int(s.support)
	begin := int(math.Floor(center - s.support + 0.5))
	taps := buf[len(buf)-count:]
	sum := s.fill(taps, begin, center, 1)
	first = max(begin, 0)
	w = buf[:min(begin+count, s.in)-first]
	clear(w)
	for k, x := range taps {
		at := &w[min(max(begin+k-first, 0), len(w)-1)]
		*at += x
		largest = max(largest, *at)
	}
	for k := range w {
		w[k] /= sum
	}
	return first, w, largest
}
