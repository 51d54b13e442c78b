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
	o := &randAugment{NumOps: a.within("num_ops", 2, 0, 64), NumMagnitudeBins: a.within("num_magnitude_bins", 31, 2, 1000)}
	o.Magnitude = a.within("magnitude", 9, 0, o.NumMagnitudeBins-1)
	o.Interpolation = a.warping("nearest")
	o.Fill = a.paint(nil)
	o.policyDialect = a.policyDialect(o.Interpolation)
	o.generation = a.generation(o.policyDialect)
	return o
}

func (o *randAugment) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

// draw takes op and sign of tweak k from block k.
func (o *randAugment) draw(d rng, p *program, rec *Draw) error {
	told, b, within := newReport(rec), o.sampling(o.Interpolation, o.Fill), o.of(usual)
	for k := range o.NumOps {
		x := d.Block(uint32(k)) //nolint:gosec // at most 64
		name := randomOps[order.Below(x[0], uint32(len(randomOps)))]
		t := within.at(name, o.Magnitude, o.NumMagnitudeBins, negated(x[1]), p.size())
		told.add(t)
		if err := p.tweak(t, b); err != nil {
			return err
		}
	}
	told.write()
	return nil
}
