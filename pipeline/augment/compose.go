package augment

import "image"

// compose is several ops where one is wanted: an alternative of RandomChoice.
type compose struct{ within }

func newCompose(a *arguments) op { return &compose{a.transforms()} }

func (o *compose) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return o.Transforms.then(size, fixed)
}

func (o *compose) draw(d rng, p *program, rec *Draw) error { return o.all(d, p, rec) }

// all runs all ops inside, in order.
func (o *within) all(d rng, p *program, rec *Draw) error {
	var which sequence
	for i := range o.Transforms.steps {
		which[i] = uint8(i)
	}
	told, err := o.run(d, which[:len(o.Transforms.steps)], p, rec)
	if rec != nil {
		rec.Parameters = canonical(map[string]any{"transforms": told})
	}
	return err
}

// identity does nothing: an alternative of RandomChoice.
type identity struct{ sameSize }

func newIdentity(*arguments) op { return identity{} }

func (identity) draw(rng, *program, *Draw) error { return nil }
