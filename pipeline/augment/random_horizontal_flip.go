package augment

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randomHorizontalFlip struct {
	P float64 `json:"p"`
}

func newRandomHorizontalFlip(a *arguments) op { return &randomHorizontalFlip{a.probability()} }

func (o *randomHorizontalFlip) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomHorizontalFlip) draw(d dice, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.flipX()
}

// happens draws whether a random op is applied, as torch compares: in float32.
func happens(d dice, p float64, rec *Draw) bool {
	applied := order.Unit(d.block(0)[0]) < float32(p)
	if rec != nil {
		rec.Applied = applied
	}
	return applied
}
