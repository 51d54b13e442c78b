package raster

import (
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// Whole numbers below 2²⁴ add up exactly in any order; beyond that the order shows.
func TestTorchSumIsACascade(t *testing.T) {
	for _, v := range []struct {
		n    int
		want float32
	}{
		{40, 4862},
		{1000, 127495},
		{131072, 16711564},
		{187500, 23906260},
		{187507, 23907180},
		{1000003, 127500152},
	} {
		values := make([]byte, v.n)
		for i := range values {
			values[i] = byte(uint32(i) * 2654435761 >> 24)
		}
		if got := torchSum(values); got != v.want {
			t.Errorf("%d values: %.0f, want %.0f", v.n, got, v.want)
		}
	}
}

// A hue that is turned by nothing, or all around, is the picture: torchvision's way to HSV and back loses nothing of 8
// bits there.
func TestHuesOfTensorsReturn(t *testing.T) {
	var w Workspace
	m, want := manyColours()
	turnHueTensor(&Effect{}, &w, m)
	for i := range want {
		if m.Pix[i] != want[i] {
			t.Fatalf("value %d: %d became %d", i, want[i], m.Pix[i])
		}
	}
}

// manyColours is a picture of many colours, and its values.
func manyColours() (*pixel.Image, []byte) {
	m := &pixel.Image{}
	m.Reset(128, 128)
	for y := range m.H {
		for x := range m.W {
			copy(m.Pix[y*m.Stride+3*x:], []byte{byte(2 * x), byte(x ^ y), byte(2 * y)})
		}
	}
	return m, append([]byte(nil), m.Pix...)
}
