package transform

import (
	"encoding/json"
	"image"
)

// randomOrder applies all of its ops.
type randomOrder struct{ within }

func newRandomOrder(a *arguments) op { return &randomOrder{a.transforms()} }

// resultOf knows the size where at most one op changes any.
func (o *randomOrder) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	var changes op
	for _, s := range o.Transforms.steps {
		if to, known := s.resultOf(size, fixed); to != size || known != fixed {
			if changes != nil {
				return image.Point{}, false
			}
			changes = s.op
		}
	}
	if changes == nil {
		return size, fixed
	}
	then, thenFixed := changes.resultOf(size, fixed)
	for _, s := range o.Transforms.steps {
		if to, known := s.resultOf(then, thenFixed); to != then || known != thenFixed {
			return image.Point{}, false
		}
	}
	return then, thenFixed
}

func (o *randomOrder) draw(d rng, p *program, rec *Draw) error {
	var which sequence
	n := len(o.Transforms.steps)
	d.shuffle(which[:n])
	told, err := o.run(d, which[:n], p, rec)
	if rec != nil {
		numbers := make([]int, n)
		for k, i := range which[:n] {
			numbers[k] = int(i)
		}
		rec.Parameters = canonical(struct {
			Order      []int             `json:"order"`
			Transforms []json.RawMessage `json:"transforms"`
		}{numbers, told})
	}
	return err
}
