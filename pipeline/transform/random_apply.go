package transform

import "image"

type randomApply struct {
	container
	P float64 `json:"p"`
}

func newRandomApply(a *arguments) op { return &randomApply{a.readTransforms(), a.readProbability()} }

func (o *randomApply) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	then, thenFixed := o.Transforms.sizeAfter(size, fixed)
	switch o.P {
	case 0:
		return size, fixed
	case 1:
		return then, thenFixed
	}
	return agreeOnSize(size, then, fixed && thenFixed)
}

func (o *randomApply) drawParameters(d rng, p *program, rec *Draw) error {
	if drawApplied(d, o.P, rec) {
		return o.drawAllInner(d, p, rec)
	}
	if rec != nil {
		rec.Parameters = []byte(`{"transforms":[]}`)
	}
	return nil
}
