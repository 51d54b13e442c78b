package transform

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// corners cuts the four corners and the middle out, FiveCrop, and out of the flipped picture too, TenCrop. The crops
// stand below each other in one picture: upper left, upper right, lower left, lower right, middle.
type corners struct {
	Size size `json:"size"`
	// VerticalFlip is TenCrop's.
	VerticalFlip *bool `json:"vertical_flip,omitempty"`

	count int
}

func newFiveCrop(a *arguments) op { return newCorners(a, 5) }

func newTenCrop(a *arguments) op {
	o, down := newCorners(a, 10), a.readBool("vertical_flip", false)
	o.VerticalFlip = &down
	return o
}

func newCorners(a *arguments, count int) *corners {
	if a.depth > 0 {
		a.refuseArgument("op", "makes several pictures of one, which nothing can be done with on nodes: must stand last, not inside another", "CenterCrop")
	}
	o := &corners{Size: a.readSize("size"), count: count}
	if o.Size[0]*count > MaxSide {
		a.refuseArgument("size", fmt.Sprintf("%d crops below each other would be higher than %d", count, MaxSide), MaxSide/count)
	}
	return o
}

// checkCorners returns an error for a step behind crops.
func (c Chain) checkCorners() *PlanError {
	for i := 1; i < len(c.steps); i++ {
		if _, is := c.steps[i-1].op.(*corners); is {
			return &PlanError{Step: i, Op: c.steps[i].name, Problem: "must stand before " + c.steps[i-1].name + ", which makes several pictures of one"}
		}
	}
	return nil
}

func (o *corners) outputSize(image.Point, bool) (image.Point, bool) { return o.stackedSize(), true }

func (o *corners) stackedSize() image.Point { return image.Pt(o.Size[1], o.Size[0]*o.count) }

func (o *corners) drawParameters(_ rng, p *program, _ *Draw) error {
	size := p.currentSize()
	if size.X < o.Size[1] || size.Y < o.Size[0] {
		return fmt.Errorf("crops of %d×%d pixels do not fit a picture of %d×%d", o.Size[1], o.Size[0], size.X, size.Y)
	}
	center := image.Pt(middleOffset(size.X, o.Size[1]), middleOffset(size.Y, o.Size[0]))
	return p.addEffect(raster.CutCorners(o.Size[0], center, o.VerticalFlip != nil && *o.VerticalFlip), o.stackedSize())
}
