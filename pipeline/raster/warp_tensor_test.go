package raster

import (
	"bytes"
	"image"
	"math"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// fusedPair fuses once, also where the sum in float64 lands between two numbers of float32.
func TestFusedPairFusesOnce(t *testing.T) {
	u, a := float32(249.5), float32(6.123234e-17)/250
	for i := range 500 {
		v, b := float32(i)-249.5, float32(-1)/float32(187.5)
		if have, want := fusePair(u, v, a, b, 0), order.Fused(v, b, u*a); have != want {
			t.Errorf("%v·%v + %v·%v = %v, want %v", u, a, v, b, have, want)
		}
	}
}

// What torchvision says of some pictures that grow; of the last one only where MKL has AVX-512 on Intel's processors.
func TestBoundsOfTensors(t *testing.T) {
	for _, v := range []struct {
		angle  float64
		center [2]float64
		size   image.Point
		want   image.Point
	}{
		{30, [2]float64{}, image.Pt(500, 375), image.Pt(622, 575)},
		{-45.5, [2]float64{}, image.Pt(64, 48), image.Pt(80, 80)},
		{90, [2]float64{}, image.Pt(31, 20), image.Pt(21, 32)},
		{1e-3, [2]float64{}, image.Pt(7, 9), image.Pt(7, 9)},
		{44.554508209228516, [2]float64{100.3 - 184, 20.8 - 191}, image.Pt(368, 382), image.Pt(531, 531)},
	} {
		m := Affinity{Angle: -v.angle, Scale: 1}.InverseMatrix(&v.center)
		if got := m.BoundsOfTensor(v.size); got != v.want {
			t.Errorf("%v turned by %v: %v, want %v", v.size, v.angle, got, v.want)
		}
	}
}

// Where a perspective divides by nothing, torch's bilinear pixels are 0, whatever is painted outside; its nearest ones
// are outside.
func TestHorizonOfAPerspective(t *testing.T) {
	src := pixel.Image{Pix: bytes.Repeat([]byte{200}, 3*8*8+64), W: 8, H: 8, Stride: 3 * 8}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	points := []sourcePoint32{{inf, -inf}, {inf, 0}, {0, nan}, {1e30, 0}, {2, 2}}
	f := fillTensor{given: true, fill: [3]float32{9, 9, 9}, paint: [3]byte{9, 9, 9}}
	row := make([]byte, 3*len(points))
	f.sampleBilinear(row, &src, points)
	for i, want := range []byte{0, 0, 0, 9, 200} {
		if row[3*i] != want || row[3*i+2] != want {
			t.Errorf("point %v: %v, want %d", points[i], row[3*i:3*i+3], want)
		}
	}
	sampleNearest(row, &src, points, f.paint)
	for i, want := range []byte{9, 9, 9, 9, 200} {
		if row[3*i] != want {
			t.Errorf("nearest to %v: %v, want %d", points[i], row[3*i:3*i+3], want)
		}
	}
}
