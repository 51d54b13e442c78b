package augment

import "image"

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
