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
	o := &randomResize{Min: a.needed("min_size", 256), Max: a.needed("max_size", 480), method: a.method()}
	if o.Max <= o.Min {
		a.refuse("max_size", fmt.Sprintf("must be greater than min_size, %d, got %d", o.Min, o.Max), o.Min+1)
	}
	return o
}

func (o *randomResize) resultOf(image.Point, bool) (image.Point, bool) { return image.Point{}, false }

// draw takes a short side from Min to Max−1.
func (o *randomResize) draw(d rng, p *program, rec *Draw) error {
	short := o.Min + int(order.Below(d.Block(0)[0], uint32(o.Max-o.Min)))
	if rec != nil {
		rec.Parameters = canonical(sizeParameters{[]int{short}})
	}
	rule := resizeOp{short: short}
	return p.resize(rule.to(p.size()), o.of())
}

type sizeParameters struct {
	Size []int `json:"size"`
}

// resizeTo resizes to a drawn size.
func resizeTo(to image.Point, m resize.Method, p *program, rec *Draw) error {
	if rec != nil {
		rec.Parameters = canonical(sizeParameters{[]int{to.Y, to.X}})
	}
	return p.resize(to, m)
}

type randomShortestSize struct {
	Min []int `json:"min_size"`
	Max *int  `json:"max_size"`
	method
}

func newRandomShortestSize(a *arguments) op {
	o := &randomShortestSize{Min: a.list("min_size", 256)}
	if raw, ok := a.take("max_size"); ok && !isNull(raw) {
		most := a.whole("max_size", raw)
		o.Max = &most
	}
	o.method = a.method()
	return o
}

func (o *randomShortestSize) resultOf(image.Point, bool) (image.Point, bool) {
	return image.Point{}, false
}

// draw takes one of the short sides; where the long one would be too long, it decides.
func (o *randomShortestSize) draw(d rng, p *program, rec *Draw) error {
	from := p.size()
	short := o.Min[order.Below(d.Block(0)[0], uint32(len(o.Min)))]
	r := float64(short) / float64(min(from.X, from.Y))
	if o.Max != nil {
		r = min(r, float64(*o.Max)/float64(max(from.X, from.Y)))
	}
	return resizeTo(image.Pt(int(float64(from.X)*r), int(float64(from.Y)*r)), o.of(), p, rec)
}

type scaleJitter struct {
	Target size       `json:"target_size"`
	Scale  [2]float64 `json:"scale_range"`
	method
}

func newScaleJitter(a *arguments) op {
	return &scaleJitter{a.size("target_size"), a.span("scale_range", [2]float64{0.1, 2}, 0, MaxSide), a.method()}
}

func (o *scaleJitter) resultOf(image.Point, bool) (image.Point, bool) { return image.Point{}, false }

// draw is torchvision's make_params, in float32; it measures the height by the second number of target_size, as that does.
func (o *scaleJitter) draw(d rng, p *program, rec *Draw) error {
	from := p.size()
	scale := float32(o.Scale[0]) + float32(order.Unit(d.Block(0)[0])*float32(o.Scale[1]-o.Scale[0]))
	fit := min(float64(o.Target[1])/float64(from.Y), float64(o.Target[0])/float64(from.X))
	r := float32(float32(fit) * scale)
	return resizeTo(image.Pt(int(float32(float32(from.X)*r)), int(float32(float32(from.Y)*r))), o.of(), p, rec)
}
