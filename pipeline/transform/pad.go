package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// border is how many pixels are added on each side: left, top, right, bottom.
type border [4]int

// paddedRectangle is the padded picture, in the picture's coordinates.
func (b border) paddedRectangle(size image.Point) image.Rectangle {
	return image.Rect(-b[0], -b[1], size.X+b[2], size.Y+b[3])
}

// padding is what an op puts around a picture.
type padding struct {
	Fill [3]byte `json:"fill"`
	Mode string  `json:"padding_mode"`
}

// cutPadded cuts r out of the picture, padded where r is outside.
func (o *padding) cutPadded(p *program, r image.Rectangle) error {
	if o.Mode == raster.PadConstant {
		return p.addPadding(r, o.Fill)
	}
	return p.addExtension(r, o.Mode)
}

func (a *arguments) readPaddingMode() string {
	raw, ok := a.takeArgument("padding_mode")
	if !ok {
		return raster.PadConstant
	}
	return a.readChoice("padding_mode", raw, []string{raster.PadConstant, raster.PadEdge, raster.PadReflect, raster.PadSymmetric})
}

// readPadding reads fill and padding_mode.
func (a *arguments) readPadding() padding {
	p := padding{a.readFill(), a.readPaddingMode()}
	if p.Mode != raster.PadConstant {
		p.Fill = [3]byte{} // nothing is filled
	}
	return p
}

// readBorder reads a list of one, two or four numbers, or one number.
func (a *arguments) readBorder(name string, raw json.RawMessage) border {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || isNull(raw) {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 2 && len(list) != 4 {
		a.refuseArgument(name, fmt.Sprintf("must be a number, or a list of one, two or four, got %s", shortenText(raw)), []int{4, 4, 4, 4})
		return border{}
	}
	var b border
	for i := range b {
		b[i] = a.readCount(name, list[i%len(list)], 0, MaxSide)
	}
	return b
}

// readFill reads a colour: one number from 0 to 255 for all channels, or three. torchvision cuts fractions off.
func (a *arguments) readFill() (fill [3]byte) {
	raw, ok := a.takeArgument("fill")
	if !ok || isNull(raw) {
		return fill
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		list = []json.RawMessage{raw}
	}
	if len(list) != 1 && len(list) != 3 {
		a.refuseArgument("fill", fmt.Sprintf("must be a number, or a list of three, got %s", shortenText(raw)), []int{0, 0, 0})
		return fill
	}
	for i := range fill {
		fill[i] = byte(a.parseNumber("fill", list[i%len(list)], 0, 255))
	}
	return fill
}

// addExtension cuts r out of the picture, which goes on outside as mode says.
func (p *program) addExtension(r image.Rectangle, mode string) error {
	if r.In(image.Rectangle{Max: p.currentSize()}) {
		return p.addCrop(r)
	}
	return p.addEffect(raster.ExtendTo(r, mode), r.Size())
}

type pad struct {
	Padding border `json:"padding"`
	padding
}

func newPad(a *arguments) op {
	o := &pad{}
	if raw, ok := a.takeArgument("padding"); ok {
		o.Padding = a.readBorder("padding", raw)
	} else {
		a.refuseArgument("padding", "is missing", 4)
	}
	o.padding = a.readPadding()
	return o
}

func (o *pad) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return o.Padding.paddedRectangle(size).Size(), fixed
}

func (o *pad) drawParameters(_ rng, p *program, _ *Draw) error {
	return o.cutPadded(p, o.Padding.paddedRectangle(p.currentSize()))
}
