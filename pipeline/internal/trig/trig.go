// Package trig has the functions of angles with the same bits on every machine, which package math does not have. They
// work with twice the digits and round once, so that they are correctly rounded but for about one in 10¹³ arguments. It
// starts no goroutine and imports nothing of ours.
package trig

import "math"

// A twofold is the sum of two numbers, the second below half a unit of the first.
type twofold struct{ hi, lo float64 }

// sumOf is a+b, exact.
func sumOf(a, b float64) twofold {
	s := a + b
	t := s - a
	return twofold{s, (a - (s - t)) + (b - t)}
}

// productOf is a·b, exact.
func productOf(a, b float64) twofold {
	p := float64(a * b)
	return twofold{p, math.FMA(a, b, -p)}
}

func (a twofold) plus(b twofold) twofold {
	s := sumOf(a.hi, b.hi)
	return sumOf(s.hi, s.lo+(a.lo+b.lo))
}

func (a twofold) minus(b twofold) twofold { return a.plus(twofold{-b.hi, -b.lo}) }

func (a twofold) times(b twofold) twofold {
	p := productOf(a.hi, b.hi)
	return sumOf(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

func (a twofold) over(b twofold) twofold {
	q := a.hi / b.hi
	r := a.minus(b.times(twofold{q, 0}))
	return sumOf(q, r.hi/b.hi)
}

// halfPi is π/2 in three parts.
var halfPi = [3]float64{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}

// SineCosine is the sine and the cosine of up to some 10⁶ radians.
func SineCosine(x float64) (sine, cosine float64) {
	s, c := sineCosine(x)
	return s.hi, c.hi
}

// sineCosine is for angles up to some 10⁶ radians: x = k·π/2 + r, and the Taylor series for |r| ≤ π/4.
func sineCosine(x float64) (sine, cosine twofold) {
	k := math.RoundToEven(float64(x * (2 / math.Pi)))
	r := twofold{x, 0}
	for _, part := range halfPi {
		r = r.minus(productOf(k, part))
	}
	square := r.times(r)
	sine, cosine = r.times(sumSeries(square, 29)), sumSeries(square, 28)
	switch int(k) & 3 {
	case 1:
		return cosine, negate(sine)
	case 2:
		return negate(sine), negate(cosine)
	case 3:
		return negate(cosine), sine
	}
	return sine, cosine
}

func negate(a twofold) twofold { return twofold{-a.hi, -a.lo} }

// sumSeries is 1 − s/(n−1)n·(…(1 − s/(1·2))) with every second n: of the cosine for an even n, of the sine through its
// angle for an odd one.
func sumSeries(square twofold, n float64) twofold {
	sum := twofold{1, 0}
	for ; n > 1; n -= 2 {
		sum = twofold{1, 0}.minus(square.times(sum).over(twofold{n * (n - 1), 0}))
	}
	return sum
}

// Cos is the cosine of up to some 10⁶ radians.
func Cos(x float64) float64 {
	_, c := sineCosine(x)
	return c.hi
}

// Tan is the tangent of up to some 10⁶ radians.
func Tan(x float64) float64 {
	s, c := sineCosine(x)
	return s.over(c).hi
}

// Atan is the arc tangent. It corrects what math.Atan says, by one step of Newton's.
func Atan(x float64) float64 {
	near := math.Atan(x)
	s, c := sineCosine(near)
	wide := twofold{x, 0}
	off := wide.times(c).minus(s).over(wide.times(s).plus(c))
	return twofold{near, 0}.plus(off).hi
}

// Radians are those of degrees, rounded as Python does.
func Radians(x float64) float64 { return float64(x * (math.Pi / 180)) }

// Degrees are those of radians, rounded as Python does.
func Degrees(x float64) float64 { return float64(x * (180 / math.Pi)) }

// Modulo360 is Python's x % 360.
func Modulo360(x float64) float64 {
	m := math.Mod(x, 360)
	if m < 0 {
		m += 360
	}
	return m + 0 // −0 becomes 0
}

// Round15 is Python's round(x, 15) for |x| ≤ 1.
func Round15(x float64) float64 {
	p := productOf(x, 1e15)
	n := math.RoundToEven(p.hi)
	if tie := math.Abs(p.hi-math.Trunc(p.hi)) == 0.5; tie && p.lo != 0 {
		n = math.Floor(p.hi)
		if p.lo > 0 {
			n++
		}
	}
	return n / 1e15
}
