package transform

import (
	"encoding/json"
	"image"
)

// randomOrder applies all of its ops.
type randomOrder struct{ container }

func newRandomOrder(a *arguments) op { return &randomOrder{a.readTransforms()} }

// outputSize knows the size where at most one op changes any.
func (o *randomOrder) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	var changes op
	for _, s := range o.Transforms.steps {
		if to, known := s.outputSize(size, fixed); to != size || known != fixed {
			if changes != nil {
				return image.Point{}, false
			}
			changes = s.op
		}
	}
	if changes == nil {
		return size, fixed
	}
	then, thenFixed := changes.outputSize(size, fixed)
	for _, s := range o.Transforms.steps {
		if to, known := s.outputSize(then, thenFixed); to != then || known != thenFixed {
			return image.Point{}, false
		}
	}
	return then, thenFixed
}

func (o *randomOrder) drawParameters(d rng, p *program, rec *Draw) error {
	var which sequence
	n := len(o.Transforms.steps)
	d.shuffleIndices(which[:n])
	told, err := o.drawInner(d, which[:n], p, rec)
	if rec != nil {
		numbers := make([]int, n)
		for k, i := range which[:n] {
			numbers[k] = int(i)
		}
		rec.Parameters = marshalCanonical(struct {
			Order      []int             `json:"order"`
			Transforms []json.RawMessage `json:"transforms"`
		}{numbers, told})
	}
	return err
}
