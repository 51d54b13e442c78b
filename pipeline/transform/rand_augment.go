package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randAugment struct {
	NumOps           int         `json:"num_ops"`
	Magnitude        int         `json:"magnitude"`
	NumMagnitudeBins int         `json:"num_magnitude_bins"`
	Interpolation    string      `json:"interpolation"`
	Fill             *[3]float64 `json:"fill"`
	policyDialect
	generation
}

func newRandAugment(a *arguments) op {
	o := &randAugment{NumOps: a.readWithin("num_ops", 2, 0, 64), NumMagnitudeBins: a.readWithin("num_magnitude_bins", 31, 2, 1000)}
	o.Magnitude = a.readWithin("magnitude", 9, 0, o.NumMagnitudeBins-1)
	o.Interpolation = a.readWarpFilter("nearest")
	o.Fill = a.readPaint(nil)
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	o.generation = readGeneration(a, o.policyDialect)
	return o
}

func (o *randAugment) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

// drawParameters takes op and sign of op k from block k.
func (o *randAugment) drawParameters(d rng, p *program, rec *Draw) error {
	told, b, within := newReport[policyOp](rec), o.warpSampling(o.Interpolation, o.Fill), o.applyTo(usual)
	for k := range o.NumOps {
		x := d.Block(uint32(k)) //nolint:gosec // at most 64
		name := randomOps[order.Below(x[0], uint32(len(randomOps)))]
		t := within.policyOpAt(name, o.Magnitude, o.NumMagnitudeBins, drawNegative(x[1]), p.currentSize())
		told.addOp(t)
		if err := p.addPolicyOp(t, b); err != nil {
			return err
		}
	}
	told.writeDraw()
	return nil
}
