package transform

import (
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// Correctly rounded values.
func TestLogIsRoundedToFloat32(t *testing.T) {
	for x, want := range map[float64]float32{3.0 / 4: -0x1.269622p-2, 4.0 / 3: 0x1.269624p-2, 0.3: -0x1.34379p+0, 3.3: 0x1.31a4e6p+0, 1: 0, 0.5: -0x1.62e43p-1} {
		if got := logFloat32(x); got != want {
			t.Errorf("log %v = %x, want %x", x, got, want)
		}
	}
}

func TestCropStaysInside(t *testing.T) {
	c := parse(t, `{"op":"RandomResizedCrop","size":8,"scale":[0,1.5],"ratio":[0.2,5]}`)
	o := c.steps[0].op.(*randomResizedCrop)
	for i := range uint32(20000) {
		size := image.Pt(1+int(i%97), 1+int(i*7%83))
		r := o.drawCrop(rng{RNG: raster.RNG{Key: order.NewKey(1, "x/0"), Sample: order.Sample{Index: i}}}, size)
		if r.Empty() || !r.In(image.Rectangle{Max: size}) {
			t.Fatalf("%v of %v", r, size)
		}
	}
}

// No attempt can succeed where the area is far too large: the middle, at the nearest ratio, rounded half to even.
func TestFallbackIsTheMiddle(t *testing.T) {
	o := parse(t, `{"op":"RandomResizedCrop","size":8,"scale":[500,900],"ratio":[0.4,1.5]}`).steps[0].op.(*randomResizedCrop)
	for size, want := range map[image.Point]image.Rectangle{
		{10, 10}:  makeRectangle(0, 0, 10, 10),
		{10, 101}: makeRectangle(0, 38, 10, 25),
		{1, 100}:  makeRectangle(0, 49, 1, 2), // 2.5 rounds to 2
		{15, 3}:   makeRectangle(5, 0, 4, 3),  // 4.5 rounds to 4
		{100, 5}:  makeRectangle(46, 0, 8, 5), // 7.5 rounds to 8
	} {
		if got := o.drawCrop(rng{RNG: raster.RNG{Key: order.NewKey(1, "x/0")}}, size); got != want {
			t.Errorf("%v: %v, want %v", size, got, want)
		}
	}
}
