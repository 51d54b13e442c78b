package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type trivialAugmentWide struct {
	NumMagnitudeBins int         `json:"num_magnitude_bins"`
	Interpolation    string      `json:"interpolation"`
	Fill             *[3]float64 `json:"fill"`
	policyDialect
	generation
}

func newTrivialAugmentWide(a *arguments) op {
	o := &trivialAugmentWide{NumMagnitudeBins: a.readWithin("num_magnitude_bins", 31, 2, 1000), Interpolation: a.readWarpFilter("nearest"), Fill: a.readPaint(nil)}
	o.policyDialect = readPolicyDialect(a, o.Interpolation)
	o.generation = readGeneration(a, o.policyDialect)
	return o
}

func (o *trivialAugmentWide) outputSize(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

// drawParameters takes op, bin and sign from block 0.
func (o *trivialAugmentWide) drawParameters(d rng, p *program, rec *Draw) error {
	x := d.Block(0)
	name := randomOps[order.Below(x[0], uint32(len(randomOps)))]
	bin := order.Below(x[1], uint32(o.NumMagnitudeBins)) //nolint:gosec // at most 1000
	within := o.applyTo(wide)
	t := within.policyOpAt(name, int(bin), o.NumMagnitudeBins, drawNegative(x[2]), p.currentSize())
	told := newReport[policyOp](rec)
	told.addOp(t)
	told.writeDraw()
	return p.addPolicyOp(t, o.warpSampling(o.Interpolation, o.Fill))
}
