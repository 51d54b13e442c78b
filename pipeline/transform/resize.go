package transform

import (
	"fmt"
	"image"
)

type resizeOp struct {
	// Size is a number for the shorter side, height and width, or nil when MaxSize alone decides.
	Size any `json:"size"`
	method
	MaxSize *int `json:"max_size"`

	short int  // 0: none
	exact size // 0: none
	most  int  // 0: none
}

func newResize(a *arguments) op {
	o := &resizeOp{}
	raw, ok := a.takeArgument("size")
	o.method = a.readMethod()
	if most, given := a.takeArgument("max_size"); given && !isNull(most) {
		o.most = a.parseWhole("max_size", most)
		o.MaxSize = &o.most
	}
	switch {
	case !ok:
		a.refuseArgument("size", "is missing", 256)
	case isNull(raw) && o.most == 0:
		a.refuseArgument("size", "may be null only with max_size", 256)
	case !isNull(raw):
		o.setSize(a, a.parseWholes("size", raw))
	}
	return o
}

func (o *resizeOp) setSize(a *arguments, sizes []int) {
	if len(sizes) == 2 {
		o.exact = size(sizes)
		o.Size = o.exact
		if o.most > 0 {
			a.refuseArgument("max_size", "goes with a single size or with null", nil)
		}
		return
	}
	o.short, o.Size = sizes[0], sizes[0]
	if o.most > 0 && o.most <= o.short {
		a.refuseArgument("max_size", fmt.Sprintf("must be greater than size, %d, got %d", o.short, o.most), o.short+1)
	}
}

func (o *resizeOp) outputSize(from image.Point, fixed bool) (image.Point, bool) {
	if o.exact != (size{}) {
		return o.exact.asPoint(), true
	}
	if !fixed {
		return image.Point{}, false
	}
	return o.targetSize(from), true
}

func (o *resizeOp) drawParameters(_ rng, p *program, _ *Draw) error {
	return p.addResize(o.targetSize(p.currentSize()), o.resizeMethod())
}

// targetSize is torchvision's size rule; it truncates, and may give 0.
func (o *resizeOp) targetSize(from image.Point) image.Point {
	if o.exact != (size{}) {
		return o.exact.asPoint()
	}
	short, long := min(from.X, from.Y), max(from.X, from.Y)
	newShort, newLong := scaleSide(o.most, short, long), o.most
	if o.short > 0 {
		newShort, newLong = o.short, scaleSide(o.short, long, short)
		if o.most > 0 && newLong > o.most {
			newShort, newLong = scaleSide(o.most, newShort, newLong), o.most
		}
	}
	if from.X <= from.Y {
		return image.Pt(newShort, newLong)
	}
	return image.Pt(newLong, newShort)
}

// scaleSide is int(a*b/c) of Python.
func scaleSide(a, b, c int) int { return int(float64(a*b) / float64(c)) }
