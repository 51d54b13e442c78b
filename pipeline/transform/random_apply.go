package transform

import "image"

type randomApply struct {
	within
	P float64 `json:"p"`
}

func newRandomApply(a *arguments) op { return &randomApply{a.transforms(), a.probability()} }

func (o *randomApply) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	then, thenFixed := o.Transforms.then(size, fixed)
	switch o.P {
	case 0:
		return size, fixed
	case 1:
		return then, thenFixed
	}
	return agree(size, then, fixed && thenFixed)
}

func (o *randomApply) draw(d rng, p *program, rec *Draw) error {
	if happens(d, o.P, rec) {
		return o.all(d, p, rec)
	}
	if rec != nil {
		rec.Parameters = []byte(`{"transforms":[]}`)
	}
	return nil
}
