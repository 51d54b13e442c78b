package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// border is how many pixels are added on each side: left, top, right, bottom.
type border [4]int

// around is the padded picture, in the picture's coordinates.
func (b border) around(size image.Point) image.Rectangle {
	return image.Rect(-b[0], -b[1], size.X+b[2], size.Y+b[3])
}

// padding is what an op puts around a picture.
type padding struct {
	Fill [3]byte `json:"fill"`
	Mode string  `json:"padding_mode"`
}

// cut cuts r out of the picture, padded where r is outside.
func (o *padding) cut(p *program, r image.Rectangle) error {
	if o.Mode == raster.PadConstant {
		return p.pad(r, o.Fill)
	}
	return p.extend(r, o.Mode)
}

func (a *arguments) paddingMode() string {
	raw, ok := a.take("padding_mode")
	if !ok {
		return raster.PadConstant
	}
	return a.choice("padding_mode", raw, []string{raster.PadConstant, raster.PadEdge, raster.PadReflect, raster.PadSymmetric})
}

// paddingStyle reads fill and padding_mode.
func (a *arguments) paddingStyle() padding {
	p := padding{a.fill(), a.paddingMode()}
	if p.Mode != raster.PadConstant {
		p.Fill = [3]byte{} // nothing is filled
	}
	return p
}

// border reads a list of one, two or four numbers, or one number.
func (a *arguments) border(name string, raw json.RawMessage) border {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 2 && len(list) != 4 {
		a.refuse(name, fmt.Sprintf("must be a number, or a list of one, two or four, got %s", brief(raw)), []int{4, 4, 4, 4})
		return border{}
	}
	var b border
	for i := range b {
		b[i] = a.count(name, list[i%len(list)], 0, MaxSide)
	}
	return b
}

// fill reads a colour: one number from 0 to 255 for all channels, or three. torchvision cuts fractions off.
func (a *arguments) fill() (fill [3]byte) {
	raw, ok := a.take("fill")
	if !ok || isNull(raw) {
		return fill
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 3 {
		a.refuse("fill", fmt.Sprintf("must be a number, or a list of three, got %s", brief(raw)), []int{0, 0, 0})
		return fill
	}
	for i := range fill {
		fill[i] = byte(a.number("fill", list[i%len(list)], 0, 255))
	}
	return fill
}

// extend cuts r out of the picture, which goes on outside as mode says.
func (p *program) extend(r image.Rectangle, mode string) error {
	if r.In(image.Rectangle{Max: p.size()}) {
		return p.crop(r)
	}
	return p.apply(raster.ExtendTo(r, mode), r.Size())
}

type pad struct {
	Padding border `json:"padding"`
	padding
}

func newPad(a *arguments) op {
	o := &pad{}
	if raw, ok := a.take("padding"); ok {
		o.Padding = a.border("padding", raw)
	} else {
		a.refuse("padding", "is missing", 4)
	}
	o.padding = a.paddingStyle()
	return o
}

func (o *pad) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return o.Padding.around(size).Size(), fixed
}

func (o *pad) draw(_ rng, p *program, _ *Draw) error {
	return o.cut(p, o.Padding.around(p.size()))
}
