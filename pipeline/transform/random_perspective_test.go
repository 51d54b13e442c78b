package transform

import (
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// No perspective spreads a line; torchvision raises or makes noise of it.
func TestPerspectiveOfALineIsTheSamplesFault(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomPerspective","p":1}`), Options{})
	for _, size := range []image.Point{{1, 50}, {50, 1}, {1, 1}} {
		if _, _, err := rn.Begin(size.X, size.Y, order.Sample{}); err == nil {
			t.Errorf("%v has a perspective", size)
		}
	}
}

func TestPerspectivesAllocateNothing(t *testing.T) {
	for _, name := range []string{"nearest", "bilinear", "bicubic"} {
		plan := `{"op":"RandomPerspective","interpolation":"` + name + `"}`
		allocatesNothing(t, plan)
	}
}
