package transform

import (
	"fmt"
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// The classes of timm that resize, crop and pad: ResizeKeepRatio, CenterCropOrPad and RandomCropOrPad, TrimBorder.

type timmResize struct {
	Size       size       `json:"size"`
	Longest    float64    `json:"longest"` // 0: the picture covers size; 1: it fits in; between them, something between
	Scale      float64    `json:"random_scale_prob"`
	Scales     [2]float64 `json:"random_scale_range"`
	ScalesArea bool       `json:"random_scale_area"` // of the picture that is seen; else sides are multiplied
	Aspect     float64    `json:"random_aspect_prob"`
	Aspects    [2]float64 `json:"random_aspect_range"`
	method
}

func newTimmResize(a *arguments) op {
	const least = 1.0 / 1024
	o := &timmResize{Size: a.readSize("size")}
	for name, to := range map[string]*float64{"longest": &o.Longest, "random_scale_prob": &o.Scale, "random_aspect_prob": &o.Aspect} {
		if raw, ok := a.takeArgument(name); ok {
			*to = a.parseNumber(name, raw, 0, 1)
		}
	}
	o.Scales = a.readSpan("random_scale_range", [2]float64{0.85, 1.05}, least, MaxSide)
	o.ScalesArea = a.readBool("random_scale_area", false)
	o.Aspects = a.readSpan("random_aspect_range", [2]float64{0.9, 1.11}, least, MaxSide)
	o.method = a.readMethod()
	return o
}

func (o *timmResize) outputSize(image.Point, bool) (image.Point, bool) { return image.Point{}, false }

func (o *timmResize) drawParameters(d rng, p *program, rec *Draw) error {
	from := p.currentSize()
	h, w := float64(from.Y)/float64(o.Size[0]), float64(from.X)/float64(o.Size[1])
	ratio := float64(max(h, w)*o.Longest) + float64(min(h, w)*(1-o.Longest))
	down, across := o.drawFactors(d.Block(0))
	to := image.Pt(int(math.RoundToEven(float64(from.X)*across/ratio)), int(math.RoundToEven(float64(from.Y)*down/ratio)))
	return resizeTo(to, o.resizeMethod(), p, rec)
}

// drawFactors are what the height and the width are multiplied by besides: words 0 and 1 decide about the scale, 2 and 3 about the aspect.
func (o *timmResize) drawFactors(x [4]uint32) (down, across float64) {
	down = 1
	if float64(order.Unit(x[0])) < o.Scale {
		down = drawBetween(o.Scales[0], o.Scales[1], x[1])
		if o.ScalesArea {
			down = 1 / math.Sqrt(down)
		}
	}
	across = down
	if float64(order.Unit(x[2])) < o.Aspect {
		aspect := math.Sqrt(order.Exp(drawBetween(order.Log(o.Aspects[0]), order.Log(o.Aspects[1]), x[3])))
		down, across = down/aspect, across*aspect
	}
	return down, across
}

// drawBetween is a number from low to high.
func drawBetween(low, high float64, word uint32) float64 {
	return low + float64((high-low)*float64(order.Unit(word)))
}

type timmCrop struct {
	Size   size `json:"size"`
	Random bool `json:"random"` // the part, and where what is too small lies; else the middle
	padding
}

func newTimmCrop(a *arguments) op {
	return &timmCrop{a.readSize("size"), a.readBool("random", false), a.readPadding()}
}

func (o *timmCrop) outputSize(image.Point, bool) (image.Point, bool) { return o.Size.asPoint(), true }

// drawParameters cuts size out, or pads to it. At random the place of the top is drawn by the first word of block 0, that of the left side by the second.
func (o *timmCrop) drawParameters(d rng, p *program, rec *Draw) error {
	from, to := p.currentSize(), o.Size.asPoint()
	left, top := middleOffset(from.X, to.X), middleOffset(from.Y, to.Y)
	if o.Random {
		x := d.Block(0)
		left, top = drawOffset(from.X, to.X, x[1]), drawOffset(from.Y, to.Y, x[0])
	}
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Top  int `json:"top"`
			Left int `json:"left"`
		}{top, left})
	}
	return o.cutPadded(p, makeRectangle(left, top, to.X, to.Y))
}

// drawOffset is where to pixels begin in from pixels; before the beginning where there are too few.
func drawOffset(from, to int, word uint32) int {
	if to > from {
		return -int(order.Below(word, uint32(to-from+1))) //nolint:gosec // sides are small
	}
	return int(order.Below(word, uint32(from-to+1))) //nolint:gosec // likewise
}

type timmTrim struct {
	Border int `json:"border_size"`
}

func newTimmTrim(a *arguments) op {
	o := &timmTrim{}
	if raw, ok := a.takeArgument("border_size"); ok {
		o.Border = a.readCount("border_size", raw, 0, MaxSide)
	} else {
		a.refuseArgument("border_size", "is missing", 2)
	}
	return o
}

func (o *timmTrim) outputSize(from image.Point, fixed bool) (image.Point, bool) {
	return from.Sub(image.Pt(2*o.Border, 2*o.Border)), fixed
}

// drawParameters takes a border away.
func (o *timmTrim) drawParameters(_ rng, p *program, _ *Draw) error {
	from := p.currentSize()
	to, _ := o.outputSize(from, true)
	if to.X < 1 || to.Y < 1 {
		return fmt.Errorf("a border of %d pixels is trimmed, which leaves nothing of a picture of %d×%d", o.Border, from.X, from.Y)
	}
	return p.addCrop(makeRectangle(o.Border, o.Border, to.X, to.Y))
}
