package transform

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// sometimes is part of ops that apply one effect, always the same, with a probability. Its members are arguments of the op.
type sometimes struct {
	sameSize
	P float64 `json:"p"`

	effect raster.Effect
}

func (o *sometimes) draw(d rng, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.apply(o.effect, p.size())
}

func newRandomInvert(a *arguments) op {
	return &sometimes{P: a.probability(), effect: raster.Invert()}
}

func newRandomEqualize(a *arguments) op {
	return &sometimes{P: a.probability(), effect: raster.Equalize()}
}

func newRandomAutocontrast(a *arguments) op {
	o := &randomAutocontrast{sometimes{P: a.probability(), effect: raster.Autocontrast()}, a.bilingual()}
	if o.tensor() {
		o.effect = raster.AutocontrastTensor()
	}
	return o
}

type randomAutocontrast struct {
	sometimes
	bilingual
}

type randomPosterize struct {
	Bits int `json:"bits"`
	sometimes
}

func newRandomPosterize(a *arguments) op {
	bits := a.bits()
	return &randomPosterize{bits, sometimes{P: a.probability(), effect: raster.Posterize(bits)}}
}

type randomSolarize struct {
	Threshold float64 `json:"threshold"`
	sometimes
	bilingual
}

func newRandomSolarize(a *arguments) op {
	threshold := a.required("threshold", 128, -maxFactor, maxFactor)
	o := &randomSolarize{threshold, sometimes{P: a.probability(), effect: raster.Solarize(threshold)}, a.bilingual()}
	if o.tensor() && threshold > 255 {
		a.refuse("threshold", fmt.Sprintf("may not be above 255 for tensors, got %v", threshold), 255)
	}
	if o.tensor() {
		o.effect = raster.SolarizeTensor(threshold)
	}
	return o
}

type randomAdjustSharpness struct {
	Factor float64 `json:"sharpness_factor"`
	sometimes
	bilingual
}

func newRandomAdjustSharpness(a *arguments) op {
	factor := a.required("sharpness_factor", 2, 0, maxFactor)
	o := &randomAdjustSharpness{factor, sometimes{P: a.probability(), effect: raster.AdjustSharpness(factor)}, a.bilingual()}
	if o.tensor() {
		o.effect = raster.AdjustSharpnessTensor(factor)
	}
	return o
}
