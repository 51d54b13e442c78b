package augment

import "image"

type randomVerticalFlip struct {
	P float64 `json:"p"`
}

func newRandomVerticalFlip(a *arguments) op { return &randomVerticalFlip{a.probability()} }

func (o *randomVerticalFlip) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomVerticalFlip) draw(d dice, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.flipY()
}
