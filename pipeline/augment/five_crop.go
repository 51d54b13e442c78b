package augment

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// corners cuts the four corners and the middle out, FiveCrop, and out of the flipped picture too, TenCrop. The crops stand below each other in one
// picture: upper left, upper right, lower left, lower right, middle.
type corners struct {
	Size size `json:"size"`
	// VerticalFlip is TenCrop's.
	VerticalFlip *bool `json:"vertical_flip,omitempty"`

	count int
}

func newFiveCrop(a *arguments) op { return newCorners(a, 5) }

func newTenCrop(a *arguments) op {
	o, down := newCorners(a, 10), a.flag("vertical_flip")
	o.VerticalFlip = &down
	return o
}

func newCorners(a *arguments, count int) *corners {
	if a.depth > 0 {
		a.refuse("op", "makes several pictures of one, which nothing can be done with on nodes: must stand last, not inside another", "CenterCrop")
	}
	o := &corners{Size: a.size("size"), count: count}
	if o.Size[0]*count > MaxSide {
		a.refuse("size", fmt.Sprintf("%d crops below each other would be higher than %d", count, MaxSide), MaxSide/count)
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

func (o *corners) resultOf(image.Point, bool) (image.Point, bool) { return o.stacked(), true }

func (o *corners) stacked() image.Point { return image.Pt(o.Size[1], o.Size[0]*o.count) }

func (o *corners) draw(_ dice, p *program, _ *Draw) error {
	size := p.size()
	if size.X < o.Size[1] || size.Y < o.Size[0] {
		return fmt.Errorf("crops of %d×%d pixels do not fit a picture of %d×%d", o.Size[1], o.Size[0], size.X, size.Y)
	}
	flipped := 0.0
	if o.VerticalFlip != nil && *o.VerticalFlip {
		flipped = 1
	}
	return p.apply(effect{across: cutCorners, numbers: [16]float64{float64(o.Size[0]), flipped}}, o.stacked())
}

// cutCorners makes crops of dst's width and number 0's height, the sixth and those behind it of a picture upside down, where number 1 is set, or mirrored.
func cutCorners(e *effect, _ *workspace, dst, src *pixel.Image) {
	w, h := dst.W, int(e.numbers[0])
	right, bottom := src.W-w, src.H-h
	places := [5]image.Point{{0, 0}, {right, 0}, {0, bottom}, {right, bottom}, {middle(src.W, w), middle(src.H, h)}}
	for y := range dst.H {
		crop, at := y/h, places[y/h%5]
		at.Y += y % h
		to := rowOf(dst, y)
		switch {
		case crop < 5:
			copy(to, rowOf(src, at.Y)[3*at.X:])
		case e.numbers[1] != 0:
			copy(to, rowOf(src, src.H-1-at.Y)[3*at.X:])
		default:
			mirrored(to, rowOf(src, at.Y)[3*(right-at.X):][:len(to)])
		}
	}
}

// mirrored copies a row's pixels from right to left.
func mirrored(dst, src []byte) {
	for i := 0; i < len(dst); i += 3 {
		copy(dst[i:i+3], src[len(src)-3-i:])
	}
}
