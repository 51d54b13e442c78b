package transform

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randomCrop struct {
	Size        size    `json:"size"`
	Padding     *border `json:"padding"`
	PadIfNeeded bool    `json:"pad_if_needed"`
	padding
}

func newRandomCrop(a *arguments) op {
	o := &randomCrop{Size: a.readSize("size")}
	if raw, ok := a.takeArgument("padding"); ok && !isNull(raw) {
		b := a.readBorder("padding", raw)
		o.Padding = &b
	}
	o.PadIfNeeded = a.readBool("pad_if_needed", false)
	o.padding = a.readPadding()
	return o
}

func (o *randomCrop) outputSize(image.Point, bool) (image.Point, bool) { return o.Size.asPoint(), true }

// drawParameters places the crop in the padded picture: its top by the first word of block 0, its left side by the
// second.
func (o *randomCrop) drawParameters(d rng, p *program, rec *Draw) error {
	size, to := p.currentSize(), o.Size.asPoint()
	b := o.paddingOf(size)
	room := b.paddedRectangle(size).Size().Sub(to)
	if room.X < 0 || room.Y < 0 {
		return fmt.Errorf("a crop of %d×%d pixels is larger than the picture, %d×%d with its padding", to.X, to.Y, to.X+room.X, to.Y+room.Y)
	}
	x := d.Block(0)
	top, left := order.Below(x[0], uint32(room.Y+1)), order.Below(x[1], uint32(room.X+1))
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			NeedsCrop bool   `json:"needs_crop"`
			Top       uint32 `json:"top"`
			Left      uint32 `json:"left"`
			Height    int    `json:"height"`
			Width     int    `json:"width"`
			NeedsPad  bool   `json:"needs_pad"`
			Padding   border `json:"padding"`
		}{room != image.Point{}, top, left, to.Y, to.X, b != border{}, b})
	}
	return o.cutPadded(p, makeRectangle(int(left)-b[0], int(top)-b[1], to.X, to.Y))
}

// paddingOf is the padding of a picture: what is asked for, and on both sides what it then is too small by.
func (o *randomCrop) paddingOf(size image.Point) (b border) {
	if o.Padding != nil {
		b = *o.Padding
	}
	if o.PadIfNeeded {
		missing := o.Size.asPoint().Sub(b.paddedRectangle(size).Size())
		x, y := max(missing.X, 0), max(missing.Y, 0)
		b = border{b[0] + x, b[1] + y, b[2] + x, b[3] + y}
	}
	return b
}
