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
	o := &trivialAugmentWide{NumMagnitudeBins: a.within("num_magnitude_bins", 31, 2, 1000), Interpolation: a.warping("nearest"), Fill: a.paint(nil)}
	o.policyDialect = a.policyDialect(o.Interpolation)
	o.generation = a.generation(o.policyDialect)
	return o
}

func (o *trivialAugmentWide) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

// draw takes op, bin and sign from block 0.
func (o *trivialAugmentWide) draw(d rng, p *program, rec *Draw) error {
	x := d.Block(0)
	name := randomOps[order.Below(x[0], uint32(len(randomOps)))]
	bin := order.Below(x[1], uint32(o.NumMagnitudeBins)) //nolint:gosec // at most 1000
	within := o.of(wide)
	t := within.at(name, int(bin), o.NumMagnitudeBins, negated(x[2]), p.size())
	told := newReport(rec)
	told.add(t)
	told.write()
	return p.tweak(t, o.sampling(o.Interpolation, o.Fill))
}
