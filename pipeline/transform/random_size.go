package transform

import (
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// The ops that resize to a size that is drawn. Block 0's first word decides.

type randomResize struct {
	Min int `json:"min_size"`
	Max int `json:"max_size"`
	method
}

func newRandomResize(a *arguments) op {
	o := &randomResize{Min: a.readRequiredWhole("min_size", 256), Max: a.readRequiredWhole("max_size", 480), method: a.readMethod()}
	if o.Max <= o.Min {
		a.refuseArgument("max_size", fmt.Sprintf("must be greater than min_size, %d, got %d", o.Min, o.Max), o.Min+1)
	}
	return o
}

func (o *randomResize) outputSize(image.Point, bool) (image.Point, bool) { return image.Point{}, false }

// drawParameters takes a short side from Min to Max−1.
func (o *randomResize) drawParameters(d rng, p *program, rec *Draw) error {
	short := o.Min + int(order.Below(d.Block(0)[0], uint32(o.Max-o.Min)))
	if rec != nil {
		rec.Parameters = marshalCanonical(sizeParameters{[]int{short}})
	}
	rule := resizeOp{short: short}
	return p.addResize(rule.targetSize(p.currentSize()), o.resizeMethod())
}

type sizeParameters struct {
	Size []int `json:"size"`
}

// resizeTo resizes to a drawn size.
func resizeTo(to image.Point, m resize.Method, p *program, rec *Draw) error {
	if rec != nil {
		rec.Parameters = marshalCanonical(sizeParameters{[]int{to.Y, to.X}})
	}
	return p.addResize(to, m)
}

type randomShortestSize struct {
	Min []int `json:"min_size"`
	Max *int  `json:"max_size"`
	method
}

func newRandomShortestSize(a *arguments) op {
	o := &randomShortestSize{Min: a.readWholes("min_size", 256)}
	if raw, ok := a.takeArgument("max_size"); ok && !isNull(raw) {
		most := a.parseWhole("max_size", raw)
		o.Max = &most
	}
	o.method = a.readMethod()
	return o
}

func (o *randomShortestSize) outputSize(image.Point, bool) (image.Point, bool) {
	return image.Point{}, false
}

// drawParameters takes one of the short sides; where the long one would be too long, it decides.
func (o *randomShortestSize) drawParameters(d rng, p *program, rec *Draw) error {
	from := p.currentSize()
	short := o.Min[order.Below(d.Block(0)[0], uint32(len(o.Min)))]
	r := float64(short) / float64(min(from.X, from.Y))
	if o.Max != nil {
		r = min(r, float64(*o.Max)/float64(max(from.X, from.Y)))
	}
	return resizeTo(image.Pt(int(float64(from.X)*r), int(float64(from.Y)*r)), o.resizeMethod(), p, rec)
}

type scaleJitter struct {
	Target size       `json:"target_size"`
	Scale  [2]float64 `json:"scale_range"`
	method
}

func newScaleJitter(a *arguments) op {
	return &scaleJitter{a.readSize("target_size"), a.readSpan("scale_range", [2]float64{0.1, 2}, 0, MaxSide), a.readMethod()}
}

func (o *scaleJitter) outputSize(image.Point, bool) (image.Point, bool) { return image.Point{}, false }

// drawParameters is torchvision's make_params, in float32; it measures the height by the second number of target_size,
// as that does.
func (o *scaleJitter) drawParameters(d rng, p *program, rec *Draw) error {
	from := p.currentSize()
	scale := float32(o.Scale[0]) + float32(order.Unit(d.Block(0)[0])*float32(o.Scale[1]-o.Scale[0]))
	fit := min(float64(o.Target[1])/float64(from.Y), float64(o.Target[0])/float64(from.X))
	r := float32(float32(fit) * scale)
	return resizeTo(image.Pt(int(float32(float32(from.X)*r)), int(float32(float32(from.Y)*r))), o.resizeMethod(), p, rec)
}
