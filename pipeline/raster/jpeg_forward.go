package raster

import "github.com/feedwater-io/feedwater/pipeline/internal/kernel"

// The constants of the transform: 2¹³·√2·trig.Cos(kπ/16), and sums of them, rounded.
const (
	dct0298 = 2446
	dct0390 = 3196
	dct0541 = 4433
	dct0765 = 6270
	dct0899 = 7373
	dct1175 = 9633
	dct1501 = 12299
	dct1847 = 15137
	dct1961 = 16069
	dct2053 = 16819
	dct2562 = 20995
	dct3072 = 25172
)

// forwardDCT is the accurate integer transform of libjpeg (Loeffler, Ligtenberg, Moschytz: Practical fast 1-D DCT
// algorithms with 11 multiplications, ICASSP 1989): 8 rows of samples to coefficients times 8.
func forwardDCT(b *kernel.Block, pix []byte, stride int) {
	var w [64]int32
	for y := range 8 {
		p, o := (*[8]byte)(pix[y*stride:]), (*[8]int32)(w[8*y:])
		for x, v := range p {
			o[x] = int32(v) - 128
		}
		forwardDCT8(o[:], 1)
		o[0], o[4] = o[0]<<2, o[4]<<2
		for _, x := range [...]int{1, 2, 3, 5, 6, 7} {
			o[x] = (o[x] + 1<<10) >> 11
		}
	}
	for x := range 8 {
		forwardDCT8(w[x:], 8)
		w[x], w[32+x] = (w[x]+2)>>2, (w[32+x]+2)>>2
		for _, y := range [...]int{8, 16, 24, 40, 48, 56} {
			w[y+x] = (w[y+x] + 1<<14) >> 15
		}
	}
	for i, v := range w {
		b[i] = int16(v)
	}
}

// forwardDCT8 transforms the eight numbers v[0], v[step], … Results are scaled by 2¹³, but for the first and the fifth.
func forwardDCT8(v []int32, step int) {
	v = v[:7*step+1]
	s0, d0 := v[0]+v[7*step], v[0]-v[7*step]
	s1, d1 := v[step]+v[6*step], v[step]-v[6*step]
	s2, d2 := v[2*step]+v[5*step], v[2*step]-v[5*step]
	s3, d3 := v[3*step]+v[4*step], v[3*step]-v[4*step]
	e0, e3, e1, e2 := s0+s3, s0-s3, s1+s2, s1-s2
	v[0], v[4*step] = e0+e1, e0-e1
	z := (e2 + e3) * dct0541
	v[2*step], v[6*step] = z+e3*dct0765, z-e2*dct1847
	z1, z2, z3, z4 := d3+d0, d2+d1, d3+d1, d2+d0
	z5 := (z3 + z4) * dct1175
	z1, z2, z3, z4 = -z1*dct0899, -z2*dct2562, z5-z3*dct1961, z5-z4*dct0390
	v[7*step], v[5*step] = d3*dct0298+z1+z3, d2*dct2053+z2+z4
	v[3*step], v[step] = d1*dct3072+z2+z3, d0*dct1501+z1+z4
}

// A divisor is 8·q: products with inverse, shifted by 32, are quotients of any number below 2²¹.
type divisor struct{ half, inverse uint32 }

func makeDivisors(q *[64]uint16) (d [64]divisor) {
	for i, n := range q {
		d[i] = divisor{4 * uint32(n), uint32(1<<32/(8*uint64(n))) + 1}
	}
	return d
}

// divideBlock rounds coefficients times 8 to multiples of q, halves away from zero.
func divideBlock(b *kernel.Block, by *[64]divisor) {
	for i, v := range b {
		sign := int32(v) >> 31
		n := uint64(uint32((int32(v)^sign)-sign)+by[i].half) * uint64(by[i].inverse) >> 32
		b[i] = int16((int32(n) ^ sign) - sign)
	}
}
