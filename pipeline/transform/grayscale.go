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

// newGrayscale takes three channels alone. They are not the default of torchvision, whose one channel no batch can hold.
func newGrayscale(a *arguments) op {
	raw, ok := a.take("num_output_channels")
	if !ok {
		a.refuse("num_output_channels", "is 1 when left out, and pictures have 3 channels", 3)
	} else if n := a.number("num_output_channels", raw, 1, 3); n != 3 {
		a.refuse("num_output_channels", fmt.Sprintf("pictures have 3 channels, got %s", brief(raw)), 3)
	}
	return &grayscaleOp{Channels: 3, bilingual: a.bilingual()}
}

func (o *grayscaleOp) draw(_ rng, p *program, _ *Draw) error {
	return p.apply(grayscaleIn(o.tensor()), p.size())
}

// grayscaleIn is grayscale in a dialect.
func grayscaleIn(tensor bool) raster.Effect {
	if tensor {
		return raster.GrayscaleTensor()
	}
	return raster.Grayscale()
}

type randomGrayscale struct {
	sometimes
	bilingual
}

func newRandomGrayscale(a *arguments) op {
	p := 0.1
	if raw, ok := a.take("p"); ok {
		p = a.number("p", raw, 0, 1)
	}
	b := a.bilingual()
	return &randomGrayscale{sometimes{P: p, effect: grayscaleIn(b.tensor())}, b}
}

func (o *randomGrayscale) draw(d rng, p *program, rec *Draw) error {
	if rec != nil {
		rec.Parameters = canonical(map[string]int{"num_input_channels": 3})
	}
	return o.sometimes.draw(d, p, rec)
}
