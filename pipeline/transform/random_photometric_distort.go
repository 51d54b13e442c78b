package transform

import (
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

type randomPhotometricDistort struct {
	sameSize
	Brightness [2]float64 `json:"brightness"`
	Contrast   [2]float64 `json:"contrast"`
	Saturation [2]float64 `json:"saturation"`
	Hue        [2]float64 `json:"hue"`
	P          float64    `json:"p"`
	bilingual
}

func newRandomPhotometricDistort(a *arguments) op {
	return &randomPhotometricDistort{
		Brightness: a.readSpan("brightness", [2]float64{0.875, 1.125}, 0, maxFactor),
		Contrast:   a.readSpan("contrast", [2]float64{0.5, 1.5}, 0, maxFactor),
		Saturation: a.readSpan("saturation", [2]float64{0.5, 1.5}, 0, maxFactor),
		Hue:        a.readSpan("hue", [2]float64{-0.05, 0.05}, -0.5, 0.5),
		P:          a.readProbability(),
		bilingual:  a.readBilingual(),
	}
}

// distortion is what was drawn: factors where their range is set, and the channels' permutation where permuted is.
type distortion struct {
	ranges         [4]*[2]float64
	factors        [4]float64
	contrastBefore bool
	permuted       bool
	permutation    [3]int
}

// drawDistortion draws: whether each factor is used from block 0, the factors from block 1, the rest from block 2.
func (o *randomPhotometricDistort) drawDistortion(d rng) (t distortion) {
	uses, values, rest := d.Block(0), d.Block(1), d.Block(2)
	for i, r := range [4]*[2]float64{&o.Brightness, &o.Contrast, &o.Saturation, &o.Hue} {
		if order.Unit(uses[i]) < float32(o.P) {
			t.ranges[i], t.factors[i] = r, drawUniform(values[i], *r)
		}
	}
	t.contrastBefore = order.Unit(rest[0]) < 0.5
	t.permuted = order.Unit(rest[1]) < float32(o.P)
	t.permutation = drawPermutation3(rest[2], rest[3])
	return t
}

func (t *distortion) tellDraw(rec *Draw) {
	var permutation *[3]int
	if t.permuted {
		permutation = &t.permutation
	}
	rec.Parameters = marshalCanonical(struct {
		jitter
		ContrastBefore bool    `json:"contrast_before"`
		Permutation    *[3]int `json:"channel_permutation"`
	}{tellFactors(t.ranges, t.factors), t.contrastBefore, permutation})
}

func (o *randomPhotometricDistort) drawParameters(d rng, p *program, rec *Draw) error {
	t := o.drawDistortion(d)
	if rec != nil {
		told := t
		told.tellDraw(rec)
	}
	sequence := [4]int{0, 2, 3, 1}
	if t.contrastBefore {
		sequence = [4]int{0, 1, 2, 3}
	}
	for _, i := range sequence {
		if t.ranges[i] == nil {
			continue
		}
		if err := p.addEffect(colourAdjustment(i, t.factors[i], o.onTensors()), p.currentSize()); err != nil {
			return err
		}
	}
	if !t.permuted {
		return nil
	}
	return p.addEffect(raster.PermuteChannels(t.permutation), p.currentSize())
}
