package augment

import "image"

// sameSize is part of ops that change no size.
type sameSize struct{}

func (sameSize) resultOf(size image.Point, fixed bool) (image.Point, bool) { return size, fixed }

// sometimes is part of ops that apply one effect, always the same, with a probability. Its members are arguments of the op.
type sometimes struct {
	sameSize
	P float64 `json:"p"`

	effect effect
}

func (o *sometimes) draw(d dice, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	return p.apply(o.effect, p.size())
}

func newRandomInvert(a *arguments) op {
	return &sometimes{P: a.probability(), effect: invert()}
}

func newRandomEqualize(a *arguments) op {
	return &sometimes{P: a.probability(), effect: equalize()}
}

func newRandomAutocontrast(a *arguments) op {
	return &sometimes{P: a.probability(), effect: autocontrast()}
}

type randomPosterize struct {
	Bits int `json:"bits"`
	sometimes
}

func newRandomPosterize(a *arguments) op {
	bits := a.bits()
	return &randomPosterize{bits, sometimes{P: a.probability(), effect: posterize(bits)}}
}

type randomSolarize struct {
	Threshold float64 `json:"threshold"`
	sometimes
}

func newRandomSolarize(a *arguments) op {
	threshold := a.required("threshold", 128, -maxFactor, maxFactor)
	return &randomSolarize{threshold, sometimes{P: a.probability(), effect: solarize(threshold)}}
}

type randomAdjustSharpness struct {
	Factor float64 `json:"sharpness_factor"`
	sometimes
}

func newRandomAdjustSharpness(a *arguments) op {
	factor := a.required("sharpness_factor", 2, 0, maxFactor)
	return &randomAdjustSharpness{factor, sometimes{P: a.probability(), effect: adjustSharpness(factor)}}
}
