package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// maxDepth is how deep transforms may be nested.
const maxDepth = 8

// within is part of ops that have transforms inside. Of an error inside, the place is part of the argument's name.
type within struct {
	Transforms Chain `json:"transforms"`
}

func (o *within) inside() Chain { return o.Transforms }

// tier is the worst inside.
func (o *within) tier() string {
	worst := "A"
	for _, s := range o.Transforms.steps {
		worst = max(worst, tierOf(s.op))
	}
	return worst
}

// transforms reads the ops inside.
func (a *arguments) transforms() within {
	raw, ok := a.take("transforms")
	example := []json.RawMessage{json.RawMessage(`{"op":"RandomHorizontalFlip"}`)}
	var list []json.RawMessage
	switch err := json.Unmarshal(raw, &list); {
	case !ok:
		a.refuse("transforms", "is missing", example)
	case err != nil || len(list) == 0:
		a.refuse("transforms", fmt.Sprintf("must be a list of one or more transforms, got %s", brief(raw)), example)
	case a.depth == maxDepth:
		a.refuse("transforms", fmt.Sprintf("are nested more than %d deep", maxDepth), example)
	case len(list) > maxSteps:
		a.refuse("transforms", fmt.Sprintf("must be at most %d", maxSteps), example)
	default:
		return within{a.parsed(list)}
	}
	return within{}
}

// parsed parses the ops inside, and moves the first error outwards.
func (a *arguments) parsed(list []json.RawMessage) Chain {
	c, err := a.parse(list, a.depth+1)
	if err == nil || a.err != nil {
		return c
	}
	place := fmt.Sprintf("transforms[%d]", err.Step)
	if err.Argument != "" {
		place += "." + err.Argument
	}
	problem := err.Problem
	if err.Op != "" {
		problem = err.Op + ": " + problem
	}
	a.err = &PlanError{Step: a.step, Op: a.op, Argument: place, Problem: problem, Nearest: err.Nearest}
	return c
}

// sequence is an order of ops. Its length is fixed so that no sample allocates.
type sequence [maxSteps]uint8

// run draws for some of the ops inside, in the order of which. rec gets their draws in that order.
func (o *within) run(d rng, which []uint8, p *program, rec *Draw) ([]json.RawMessage, error) {
	told := []json.RawMessage{}
	for _, i := range which {
		var inner *Draw
		if rec != nil {
			inner = &Draw{}
		}
		if err := o.Transforms.steps[i].run(rng{raster.RNG{Key: d.inside[i].Key, Sample: d.Sample}, d.inside[i].inside}, p, inner); err != nil {
			return nil, err
		}
		if rec != nil {
			told = append(told, inner.Flat())
		}
	}
	return told, nil
}

// agree is a size that several outcomes have; not fixed if they differ.
func agree(a, b image.Point, bothFixed bool) (image.Point, bool) {
	if !bothFixed || a != b {
		return image.Point{}, false
	}
	return a, true
}

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
