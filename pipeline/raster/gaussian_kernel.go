package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// gaussianKernel writes torchvision's kernel of len(dst) taps, to the last bit: a softmax over −(x ÷ sigma)², in
// torch's float32 arithmetic on processors with AVX-512. (With AVX2 alone torch adds nine taps or more in another
// order, and the last bit may differ.)
func gaussianKernel(dst []float32, sigma float32) {
	limit := float64(len(dst)-1) / (2 * math.Sqrt2)
	fillLinspace(dst, float32(-limit), float32(limit))
	largest := float32(math.Inf(-1))
	for i, x := range dst {
		x /= sigma
		dst[i] = -float32(x * x)
		largest = max(largest, dst[i])
	}
	for i, x := range dst {
		dst[i] = exp32(x - largest)
	}
	scale := 1 / softmaxSum(dst)
	for i := range dst {
		dst[i] *= scale
	}
}

// fillLinspace writes evenly spaced numbers from a to b, as torch.linspace does: the first half counted from a, the
// second from b.
func fillLinspace(dst []float32, a, b float32) {
	n := len(dst)
	if n == 1 {
		dst[0] = a
		return
	}
	step := (b - a) / float32(n-1)
	for i := range dst {
		if i < n/2 {
			dst[i] = order.Fused(float32(i), step, a)
		} else {
			dst[i] = order.Fused(-float32(n-1-i), step, b)
		}
	}
}

// exp32 is e to the x for x ≤ 0, as torch's softmax computes it (Shibata, Petrogalli: SLEEF, a portable vectorized
// library of C standard mathematical functions, 2020; expf with one unit of error): x = q·ln 2 + s, a polynomial for s.
func exp32(x float32) float32 {
	const log2e = float32(1.4426950408889634)
	if x < -104 {
		return 0
	}
	q := float32(math.RoundToEven(float64(float32(x * log2e))))
	s := order.Fused(q, -0.693145751953125, x)
	s = order.Fused(q, -1.428606765330187045e-06, s)
	u := float32(0.000198527617612853646278381)
	for _, c := range [...]float32{0.00139304355252534151077271, 0.00833336077630519866943359, 0.0416664853692054748535156, 0.166666671633720397949219, 0.5} {
		u = order.Fused(u, s, c)
	}
	u = 1 + order.Fused(float32(s*s), u, s)
	return float32(math.Ldexp(float64(u), int(q)))
}

// softmaxSum adds as torch does: from the left, or from 16 on in 16 lanes that are halved in the end.
func softmaxSum(e []float32) float32 {
	const lanes = 16
	if len(e) < lanes {
		sum := e[0]
		for _, x := range e[1:] {
			sum += x
		}
		return sum
	}
	var sums [lanes]float32
	for i, x := range e {
		sums[i%lanes] += x
	}
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0]
}
