package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

type randomPerspective struct {
	DistortionScale float64     `json:"distortion_scale"`
	P               float64     `json:"p"`
	Interpolation   string      `json:"interpolation"`
	Fill            *[3]float64 `json:"fill"`
	policyDialect
}

func newRandomPerspective(a *arguments) op {
	o := &randomPerspective{DistortionScale: 0.5}
	if raw, ok := a.takeArgument("distortion_scale"); ok {
		o.DistortionScale = a.parseNumber("distortion_scale", raw, 0, 1)
	}
	o.P, o.Interpolation, o.Fill = a.readProbability(), a.readWarpFilter("bilinear"), a.readPaint(&[3]float64{})
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	return o
}

func (o *randomPerspective) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomPerspective) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		return nil
	}
	m, err := o.drawMatrix(d, p.currentSize())
	if err != nil {
		return err
	}
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Coefficients raster.Matrix `json:"coefficients"`
		}{m})
	}
	b, size := o.warpSampling(o.Interpolation, o.Fill), p.currentSize()
	if b.Tensor {
		return p.addEffect(raster.WarpPerspectiveTensor(m, b, size), size)
	}
	return p.addEffect(raster.Warp(m, b, size), size)
}

// drawMatrix is torchvision's make_params: where the four corners go, clockwise from the upper left one. Blocks 1 and 2
// draw x and y of two each.
func (o *randomPerspective) drawMatrix(d rng, size image.Point) (raster.Matrix, error) {
	w, h := size.X, size.Y
	boundX, boundY := int(o.DistortionScale*float64(w/2))+1, int(o.DistortionScale*float64(h/2))+1
	a, b := d.Block(1), d.Block(2)
	near := func(x uint32, bound int) float64 { return float64(order.Below(x, uint32(bound))) } //nolint:gosec // bound > 0
	far := func(x uint32, bound, side int) float64 { return float64(side-bound) + near(x, bound) }
	right, bottom := float64(w-1), float64(h-1)
	start := [4][2]float64{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}
	end := [4][2]float64{
		{near(a[0], boundX), near(a[1], boundY)},
		{far(a[2], boundX, w), near(a[3], boundY)},
		{far(b[0], boundX, w), far(b[1], boundY, h)},
		{near(b[2], boundX), far(b[3], boundY, h)},
	}
	return raster.PerspectiveMatrix(&end, &start)
}
