package transform

import "github.com/feedwater-io/feedwater/pipeline/raster"

// gaussianNoiseOp adds noise as torchvision does to 8-bit tensors: normal, times 255, truncated towards zero, the sum clamped. torch's random
// numbers are its own, so the distribution is the same and the numbers are not.
type gaussianNoiseOp struct {
	sameSize
	Mean  float64 `json:"mean"`
	Sigma float64 `json:"sigma"`

	noise *raster.Noise
}

func newGaussianNoise(a *arguments) op {
	o := &gaussianNoiseOp{Sigma: 0.1}
	if raw, ok := a.take("mean"); ok {
		o.Mean = a.number("mean", raw, -maxFactor, maxFactor)
	}
	if raw, ok := a.take("sigma"); ok {
		o.Sigma = a.number("sigma", raw, 0, maxFactor)
	}
	if raw, ok := a.take("clip"); ok && string(raw) != "true" {
		a.refuse("clip", "sums are always clipped, got "+brief(raw), true)
	}
	o.noise = raster.NewNoise(255*o.Mean, 255*o.Sigma)
	return o
}

// tier is for explain.
func (o *gaussianNoiseOp) tier() string { return "C" }

func (o *gaussianNoiseOp) draw(d rng, p *program, _ *Draw) error {
	return p.apply(raster.AddNoise(o.noise, d.RNG), p.size())
}
