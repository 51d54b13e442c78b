package transform

import (
	"image"
)

type randomHorizontalFlip struct {
	P float64 `json:"p"`
}

func newRandomHorizontalFlip(a *arguments) op { return &randomHorizontalFlip{a.readProbability()} }

func (o *randomHorizontalFlip) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomHorizontalFlip) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		return nil
	}
	return p.addFlipX()
}

type randomVerticalFlip struct {
	P float64 `json:"p"`
}

func newRandomVerticalFlip(a *arguments) op { return &randomVerticalFlip{a.readProbability()} }

func (o *randomVerticalFlip) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomVerticalFlip) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		return nil
	}
	return p.addFlipY()
}
