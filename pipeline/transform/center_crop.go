package transform

import (
	"image"
	"math"
)

type centerCrop struct {
	Size size `json:"size"`
}

func newCenterCrop(a *arguments) op { return &centerCrop{a.readSize("size")} }

func (o *centerCrop) outputSize(image.Point, bool) (image.Point, bool) { return o.Size.asPoint(), true }

// drawParameters cuts the middle out. A side that is too short is padded with zeros, the odd one at the right or the
// bottom.
func (o *centerCrop) drawParameters(_ rng, p *program, _ *Draw) error {
	from, to := p.currentSize(), o.Size.asPoint()
	return p.addCrop(makeRectangle(middleOffset(from.X, to.X), middleOffset(from.Y, to.Y), to.X, to.Y))
}

// middleOffset is where to pixels begin in from pixels: half the difference, rounded half to even; before the beginning
// when there are too few.
func middleOffset(from, to int) int {
	if to > from {
		return -((to - from) / 2)
	}
	return int(math.RoundToEven(float64(from-to) / 2))
}
