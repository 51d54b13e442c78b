package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

type randomZoomOut struct {
	Fill  [3]byte    `json:"fill"`
	Sides [2]float64 `json:"side_range"`
	P     float64    `json:"p"`
}

func newRandomZoomOut(a *arguments) op {
	return &randomZoomOut{a.readFill(), a.readSpan("side_range", [2]float64{1, 4}, 1, MaxSide), a.readProbability()}
}

func (o *randomZoomOut) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed && (o.P == 0 || o.Sides[1] == 1)
}

func (o *randomZoomOut) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		return nil
	}
	b := o.drawBorder(d, p.currentSize())
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Padding border `json:"padding"`
		}{b})
	}
	fill := padding{o.Fill, raster.PadConstant}
	return fill.cutPadded(p, b.paddedRectangle(p.currentSize()))
}

// drawBorder is torchvision's make_params, in float32. Block 1 has the factor, and what share of the room is at the
// left and the top.
func (o *randomZoomOut) drawBorder(d rng, size image.Point) border {
	x := d.Block(1)
	low := float32(o.Sides[0])
	factor := low + float32(order.Unit(x[0])*float32(o.Sides[1]-o.Sides[0]))
	w, h := int(float32(size.X)*factor), int(float32(size.Y)*factor)
	left := int(float32(w-size.X) * order.Unit(x[1]))
	top := int(float32(h-size.Y) * order.Unit(x[2]))
	return border{left, top, w - left - size.X, h - top - size.Y}
}
