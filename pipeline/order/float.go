package order

import "math"

// The functions of this file give the same bits on every machine. Go may fuse x*y+z into one instruction with one
// rounding where the processor has it; an explicit conversion forbids that, so every product that is added to something
// stands inside one. math.Sqrt, Frexp and Ldexp are exact everywhere; math.Exp and math.Log are not, hence Exp and Log.

// ln 2 in two parts; the last 21 bits of the upper one are zero, so a small integer times it is exact.
const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// Exp returns e to the x for |x| ≤ 700, within two units of the last place: x = k·ln 2 + r, 14 terms of the Taylor
// series for r.
func Exp(x float64) float64 {
	k := math.RoundToEven(float64(x * (1 / math.Ln2)))
	r := float64(x-float64(k*ln2High)) - float64(k*ln2Low)
	s := 1.0
	for i := 14.0; i >= 1; i-- {
		s = 1 + float64(float64(s*r)/i)
	}
	return math.Ldexp(s, int(k))
}

// Log returns the natural logarithm of a normal x > 0, within two units of the last place (absolutely, near 1): x =
// m·2ᵏ with m near 1, ln m = 2·artanh((m−1)/(m+1)), 12 terms.
func Log(x float64) float64 {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	s := (m - 1) / (m + 1)
	q := float64(s * s)
	t := 0.0
	for i := 23.0; i >= 1; i -= 2 {
		t = 1/i + float64(t*q)
	}
	lo := float64(2*float64(s*t)) + float64(float64(k)*ln2Low)
	return float64(float64(k)*ln2High) + lo
}

// Fused returns x·y+z with a single rounding. The product is exact in float64; the sum is rounded to odd there, which
// makes the second rounding, to float32, the only one that counts.
func Fused(x, y, z float32) float32 {
	p, c := float64(float64(x)*float64(y)), float64(z)
	s := p + c
	d := s - p
	lost := (p - (s - d)) + (c - d)
	if b := math.Float64bits(s); lost != 0 && b&1 == 0 {
		if (lost > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return float32(s)
}
