package raster

import (
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// Green of a picture of 7×4 pixels, by Pillow 13: with fractions of a box alone, and with boxes wider than the picture.
func TestBlurByBoxesIsPillows(t *testing.T) {
	for radius, want := range map[float64][28]byte{
		0.1: {239, 188, 137, 86, 35, 240, 189, 138, 87, 36, 241, 190, 139, 88, 37, 242, 191, 140, 89, 38, 243, 192, 141, 90, 39, 244, 193, 142},
		0.7: {206, 169, 128, 111, 103, 180, 178, 139, 127, 112, 162, 150, 141, 137, 109, 165, 150, 138, 129, 118, 174, 160, 150, 112, 100, 176, 170, 162},
		1.9: {155, 150, 143, 141, 142, 148, 154, 151, 147, 142, 141, 143, 149, 154, 146, 143, 140, 141, 144, 150, 154, 143, 140, 139, 141, 145, 150, 154},
		6.5: {167, 166, 165, 165, 165, 164, 163, 167, 166, 165, 165, 165, 164, 163, 166, 166, 165, 165, 165, 164, 163, 166, 166, 165, 165, 165, 164, 163},
	} {
		m := &pixel.Image{}
		m.Reset(7, 4)
		for i := range 7 * 4 * 3 {
			m.Row(i / 21)[i%21] = byte(i * 7919)
		}
		e := GaussianBlurByBoxes(radius)
		e.InPlace(&e, &Workspace{Level: kernel.Scalar}, m)
		for i, v := range want {
			if got := m.Row(i / 7)[3*(i%7)+1]; got != v {
				t.Errorf("radius %v, value %d: %d, not %d", radius, i, got, v)
			}
		}
	}
	if e := GaussianBlurByBoxes(0); !e.IsNone() {
		t.Error("a radius of 0 is an effect")
	}
}
