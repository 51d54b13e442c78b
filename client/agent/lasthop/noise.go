package lasthop

import (
	"encoding/binary"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// drawNormals makes four independent numbers of the standard normal distribution of four random words, by Box and
// Muller's formula.
func drawNormals(x [4]uint32) (z [4]float32) {
	for i := 0; i < 4; i += 2 {
		u := float64(x[i]>>8+1) * (1.0 / (1 << 24))
		r := math.Sqrt(-2 * order.Log(u))
		sine, cosine := sinCosOf(x[i+1])
		z[i], z[i+1] = float32(r*cosine), float32(r*sine)
	}
	return z
}

// sinCosOf is sine and cosine of the angle x ÷ 2³² of a full turn.
func sinCosOf(x uint32) (sine, cosine float64) {
	a := float64(float64(x&(1<<30-1)) * (math.Pi / 2 / (1 << 30)))
	sine, cosine = sineOf(a), sineOf(math.Pi/2-a)
	switch x >> 30 {
	case 1:
		return cosine, -sine
	case 2:
		return -sine, -cosine
	case 3:
		return -cosine, sine
	}
	return sine, cosine
}

// sineOf is sin a for 0 ≤ a ≤ π/2, by nine terms of the Taylor series; the conversions keep machines from fusing
// products and sums.
func sineOf(a float64) float64 {
	q, s := float64(a*a), 1.0
	for i := 16.0; i >= 2; i -= 2 {
		s = 1 - float64(float64(s*q)/(i*(i+1)))
	}
	return float64(s * a)
}

// newElementWriter writes one element of the type; nil for bytes.
func (l *Hop) newElementWriter() func(dst []byte, x float32) {
	switch l.DType {
	case "float32":
		return func(dst []byte, x float32) { binary.NativeEndian.PutUint32(dst, math.Float32bits(x)) }
	case "float16":
		return func(dst []byte, x float32) { binary.NativeEndian.PutUint16(dst, toFloat16(x)) }
	case "bfloat16":
		return func(dst []byte, x float32) {
			b := math.Float32bits(x)
			binary.NativeEndian.PutUint16(dst, uint16((b+0x7fff+b>>16&1)>>16))
		}
	}
	return nil
}

// toFloat16 is the nearest float16 of |x| < 65504, ties to even.
func toFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, b := uint16(b>>16)&0x8000, b&^(1<<31)
	if b < 113<<23 { // below 2⁻¹⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	return sign | uint16((b+0xfff+b>>13&1-112<<23)>>13)
}
