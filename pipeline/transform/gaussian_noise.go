package transform

import "github.com/feedwater-io/feedwater/pipeline/raster"

// gaussianNoiseOp adds noise as torchvision does to 8-bit tensors: normal, times 255, truncated towards zero, the sum
// clamped. torch's random numbers are its own, so the distribution is the same and the numbers are not.
type gaussianNoiseOp struct {
	sameSize
	Mean  float64 `json:"mean"`
	Sigma float64 `json:"sigma"`

	noise *raster.Noise
}

func newGaussianNoise(a *arguments) op {
	o := &gaussianNoiseOp{Sigma: 0.1}
	if raw, ok := a.takeArgument("mean"); ok {
		o.Mean = a.parseNumber("mean", raw, -maxFactor, maxFactor)
	}
	if raw, ok := a.takeArgument("sigma"); ok {
		o.Sigma = a.parseNumber("sigma", raw, 0, maxFactor)
	}
	if raw, ok := a.takeArgument("clip"); ok && string(raw) != "true" {
		a.refuseArgument("clip", "sums are always clipped, got "+shortenText(raw), true)
	}
	o.noise = raster.NewNoise(255*o.Mean, 255*o.Sigma)
	return o
}

// parityTier is for explain.
func (o *gaussianNoiseOp) parityTier() string { return "C" }

func (o *gaussianNoiseOp) drawParameters(d rng, p *program, _ *Draw) error {
	return p.addEffect(raster.AddNoise(o.noise, d.RNG), p.currentSize())
}
