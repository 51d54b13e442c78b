package transform

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// randomEffect is part of ops that apply one effect, always the same, with a probability. Its members are arguments of
// the op.
type randomEffect struct {
	sameSize
	P float64 `json:"p"`

	effect raster.Effect
}

func (o *randomEffect) drawParameters(d rng, p *program, rec *Draw) error {
	if !drawApplied(d, o.P, rec) {
		return nil
	}
	return p.addEffect(o.effect, p.currentSize())
}

func newRandomInvert(a *arguments) op {
	return &randomEffect{P: a.readProbability(), effect: raster.Invert()}
}

func newRandomEqualize(a *arguments) op {
	return &randomEffect{P: a.readProbability(), effect: raster.Equalize()}
}

func newRandomAutocontrast(a *arguments) op {
	o := &randomAutocontrast{randomEffect{P: a.readProbability(), effect: raster.Autocontrast()}, a.readBilingual()}
	if o.onTensors() {
		o.effect = raster.AutocontrastTensor()
	}
	return o
}

type randomAutocontrast struct {
	randomEffect
	bilingual
}

type randomPosterize struct {
	Bits int `json:"bits"`
	randomEffect
}

func newRandomPosterize(a *arguments) op {
	bits := readBits(a)
	return &randomPosterize{bits, randomEffect{P: a.readProbability(), effect: raster.Posterize(bits)}}
}

type randomSolarize struct {
	Threshold float64 `json:"threshold"`
	randomEffect
	bilingual
}

func newRandomSolarize(a *arguments) op {
	threshold := a.readRequired("threshold", 128, -maxFactor, maxFactor)
	o := &randomSolarize{threshold, randomEffect{P: a.readProbability(), effect: raster.Solarize(threshold)}, a.readBilingual()}
	if o.onTensors() && threshold > 255 {
		a.refuseArgument("threshold", fmt.Sprintf("may not be above 255 for tensors, got %v", threshold), 255)
	}
	if o.onTensors() {
		o.effect = raster.SolarizeTensor(threshold)
	}
	return o
}

type randomAdjustSharpness struct {
	Factor float64 `json:"sharpness_factor"`
	randomEffect
	bilingual
}

func newRandomAdjustSharpness(a *arguments) op {
	factor := a.readRequired("sharpness_factor", 2, 0, maxFactor)
	o := &randomAdjustSharpness{factor, randomEffect{P: a.readProbability(), effect: raster.AdjustSharpness(factor)}, a.readBilingual()}
	if o.onTensors() {
		o.effect = raster.AdjustSharpnessTensor(factor)
	}
	return o
}
