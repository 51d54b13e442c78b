package transform

import "github.com/feedwater-io/feedwater/pipeline/raster"

// colorJitter has the range of each factor; nil: that adjustment is left out.
type colorJitter struct {
	sameSize
	Brightness *[2]float64 `json:"brightness"`
	Contrast   *[2]float64 `json:"contrast"`
	Saturation *[2]float64 `json:"saturation"`
	Hue        *[2]float64 `json:"hue"`
	bilingual
}

func newColorJitter(a *arguments) op {
	return &colorJitter{
		Brightness: a.readFactorRange("brightness", 1, 0, maxFactor),
		Contrast:   a.readFactorRange("contrast", 1, 0, maxFactor),
		Saturation: a.readFactorRange("saturation", 1, 0, maxFactor),
		Hue:        a.readFactorRange("hue", 0, -0.5, 0.5),
		bilingual:  a.readBilingual(),
	}
}

// colourAdjustment is what ColorJitter calls adjustment i.
func colourAdjustment(i int, factor float64, tensor bool) raster.Effect {
	if tensor {
		return colourAdjustmentTensor(i, factor)
	}
	switch i {
	case 0:
		return raster.AdjustBrightness(factor)
	case 1:
		return raster.AdjustContrast(factor)
	case 2:
		return raster.AdjustSaturation(factor)
	}
	return raster.AdjustHue(factor)
}

// jitter is what one draw of factors made; nil: left out.
type jitter struct {
	Brightness *float64 `json:"brightness_factor"`
	Contrast   *float64 `json:"contrast_factor"`
	Saturation *float64 `json:"saturation_factor"`
	Hue        *float64 `json:"hue_factor"`
}

// drawParameters takes the order of the adjustments from block 0, and their factors from block 1.
func (o *colorJitter) drawParameters(d rng, p *program, rec *Draw) error {
	ranges := [4]*[2]float64{o.Brightness, o.Contrast, o.Saturation, o.Hue}
	sequence, x := drawPermutation4(d.Block(0)), d.Block(1)
	var factors [4]float64
	for i, r := range ranges {
		if r != nil {
			factors[i] = drawUniform(x[i], *r)
		}
	}
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Order [4]int `json:"fn_idx"`
			jitter
		}{sequence, tellFactors(ranges, factors)})
	}
	for _, i := range sequence {
		if ranges[i] == nil {
			continue
		}
		if err := p.addEffect(colourAdjustment(i, factors[i], o.onTensors()), p.currentSize()); err != nil {
			return err
		}
	}
	return nil
}

// tellFactors is for replay, where allocating is fine.
func tellFactors(ranges [4]*[2]float64, factors [4]float64) jitter {
	var told [4]*float64
	for i, r := range ranges {
		if r != nil {
			told[i] = &factors[i]
		}
	}
	return jitter{told[0], told[1], told[2], told[3]}
}

// colourAdjustmentTensor is what ColorJitter calls adjustment i, on tensors.
func colourAdjustmentTensor(i int, factor float64) raster.Effect {
	switch i {
	case 0:
		return raster.AdjustBrightnessTensor(factor)
	case 1:
		return raster.AdjustContrastTensor(factor)
	case 2:
		return raster.AdjustSaturationTensor(factor)
	}
	return raster.AdjustHueTensor(factor)
}
