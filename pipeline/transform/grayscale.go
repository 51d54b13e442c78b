package transform

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

type grayscaleOp struct {
	sameSize
	Channels int `json:"num_output_channels"`
	bilingual
}

// newGrayscale takes three channels alone. They are not the default of torchvision, whose one channel no batch can
// hold.
func newGrayscale(a *arguments) op {
	raw, ok := a.takeArgument("num_output_channels")
	if !ok {
		a.refuseArgument("num_output_channels", "is 1 when left out, and pictures have 3 channels", 3)
	} else if n := a.parseNumber("num_output_channels", raw, 1, 3); n != 3 {
		a.refuseArgument("num_output_channels", fmt.Sprintf("pictures have 3 channels, got %s", shortenText(raw)), 3)
	}
	return &grayscaleOp{Channels: 3, bilingual: a.readBilingual()}
}

func (o *grayscaleOp) drawParameters(_ rng, p *program, _ *Draw) error {
	return p.addEffect(grayscaleIn(o.onTensors()), p.currentSize())
}

// grayscaleIn is grayscale in a dialect.
func grayscaleIn(tensor bool) raster.Effect {
	if tensor {
		return raster.GrayscaleTensor()
	}
	return raster.Grayscale()
}

type randomGrayscale struct {
	randomEffect
	bilingual
}

func newRandomGrayscale(a *arguments) op {
	p := 0.1
	if raw, ok := a.takeArgument("p"); ok {
		p = a.parseNumber("p", raw, 0, 1)
	}
	b := a.readBilingual()
	return &randomGrayscale{randomEffect{P: p, effect: grayscaleIn(b.onTensors())}, b}
}

func (o *randomGrayscale) drawParameters(d rng, p *program, rec *Draw) error {
	if rec != nil {
		rec.Parameters = marshalCanonical(map[string]int{"num_input_channels": 3})
	}
	return o.randomEffect.drawParameters(d, p, rec)
}
