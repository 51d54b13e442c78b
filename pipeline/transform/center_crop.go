package transform

import (
	"image"
	"math"
)

type centerCrop struct {
	Size size `json:"size"`
}

func newCenterCrop(a *arguments) op { return &centerCrop{a.size("size")} }

func (o *centerCrop) resultOf(image.Point, bool) (image.Point, bool) { return o.Size.point(), true }

// draw cuts the middle out. A side that is too short is padded with zeros, the odd one at the right or the bottom.
func (o *centerCrop) draw(_ rng, p *program, _ *Draw) error {
	from, to := p.size(), o.Size.point()
	return p.crop(rectangle(middle(from.X, to.X), middle(from.Y, to.Y), to.X, to.Y))
}

// middle is where to pixels begin in from pixels: half the difference, rounded half to even; before the beginning when there are
// too few.
func middle(from, to int) int {
	if to > from {
		return -((to - from) / 2)
	}
	return int(math.RoundToEven(float64(from-to) / 2))
}
