package transform

import (
	"encoding/json"
	"fmt"
	"image"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// maxDepth is how deep transforms may be nested.
const maxDepth = 8

// container is part of ops that have transforms inside. Of an error inside, the place is part of the argument's name.
type container struct {
	Transforms Chain `json:"transforms"`
}

func (o *container) innerChain() Chain { return o.Transforms }

// parityTier is the worst inside.
func (o *container) parityTier() string {
	worst := "A"
	for _, s := range o.Transforms.steps {
		worst = max(worst, tierOf(s.op))
	}
	return worst
}

// readTransforms reads the ops inside.
func (a *arguments) readTransforms() container {
	raw, ok := a.takeArgument("transforms")
	example := []json.RawMessage{json.RawMessage(`{"op":"RandomHorizontalFlip"}`)}
	var list []json.RawMessage
	switch err := json.Unmarshal(raw, &list); {
	case !ok:
		a.refuseArgument("transforms", "is missing", example)
	case err != nil || len(list) == 0:
		a.refuseArgument("transforms", fmt.Sprintf("must be a list of one or more transforms, got %s", shortenText(raw)), example)
	case a.depth == maxDepth:
		a.refuseArgument("transforms", fmt.Sprintf("are nested more than %d deep", maxDepth), example)
	case len(list) > maxSteps:
		a.refuseArgument("transforms", fmt.Sprintf("must be at most %d", maxSteps), example)
	default:
		return container{a.parseInner(list)}
	}
	return container{}
}

// parseInner parses the ops inside, and moves the first error outwards.
func (a *arguments) parseInner(list []json.RawMessage) Chain {
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

// drawInner draws for some of the ops inside, in the order of which. rec gets their draws in that order.
func (o *container) drawInner(d rng, which []uint8, p *program, rec *Draw) ([]json.RawMessage, error) {
	told := []json.RawMessage{}
	for _, i := range which {
		var inner *Draw
		if rec != nil {
			inner = &Draw{}
		}
		if err := o.Transforms.steps[i].drawStep(rng{raster.RNG{Key: d.inside[i].Key, Sample: d.Sample}, d.inside[i].inside}, p, inner); err != nil {
			return nil, err
		}
		if rec != nil {
			told = append(told, inner.Flat())
		}
	}
	return told, nil
}

// agreeOnSize is a size that several outcomes have; not fixed if they differ.
func agreeOnSize(a, b image.Point, bothFixed bool) (image.Point, bool) {
	if !bothFixed || a != b {
		return image.Point{}, false
	}
	return a, true
}

// compose is several ops where one is wanted: an alternative of RandomChoice.
type compose struct{ container }

func newCompose(a *arguments) op { return &compose{a.readTransforms()} }

func (o *compose) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return o.Transforms.sizeAfter(size, fixed)
}

func (o *compose) drawParameters(d rng, p *program, rec *Draw) error {
	return o.drawAllInner(d, p, rec)
}

// drawAllInner runs all ops inside, in order.
func (o *container) drawAllInner(d rng, p *program, rec *Draw) error {
	var which sequence
	for i := range o.Transforms.steps {
		which[i] = uint8(i)
	}
	told, err := o.drawInner(d, which[:len(o.Transforms.steps)], p, rec)
	if rec != nil {
		rec.Parameters = marshalCanonical(map[string]any{"transforms": told})
	}
	return err
}

// identity does nothing: an alternative of RandomChoice.
type identity struct{ sameSize }

func newIdentity(*arguments) op { return identity{} }

func (identity) drawParameters(rng, *program, *Draw) error { return nil }
