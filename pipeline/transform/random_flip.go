package transform

import (
	"image"
)

type randomHorizontalFlip struct {
	P float64 `json:"p"`
}

func newRandomHorizontalFlip(a *arguments) op { return &randomHorizontalFlip{a.probability()} }

func (o *randomHorizontalFlip) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomHorizontalFlip) draw(d rng, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.flipX()
}

type randomVerticalFlip struct {
	P float64 `json:"p"`
}

func newRandomVerticalFlip(a *arguments) op { return &randomVerticalFlip{a.probability()} }

func (o *randomVerticalFlip) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomVerticalFlip) draw(d rng, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.flipY()
}
