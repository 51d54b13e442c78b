package transform

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// maxElasticSigma is where kernels have 255 taps.
const maxElasticSigma = 31

// elasticTransform moves pixels by smoothed noise. torchvision makes tensors of PIL images for it, so it knows one
// dialect.
type elasticTransform struct {
	sameSize
	Alpha         [2]float64  `json:"alpha"` // of x, of y
	Sigma         [2]float64  `json:"sigma"`
	Interpolation string      `json:"interpolation"`
	Fill          *[3]float64 `json:"fill"`
}

func newElasticTransform(a *arguments) op {
	o := &elasticTransform{Alpha: [2]float64{50, 50}, Sigma: [2]float64{5, 5}}
	if x := a.readNumbers("alpha", -widest, widest, 2); x != nil {
		o.Alpha = [2]float64(x)
	}
	if x := a.readNumbers("sigma", 1e-3, maxElasticSigma, 2); x != nil {
		o.Sigma = [2]float64(x)
	}
	if o.Interpolation = a.readWarpFilter(resize.Bilinear); o.Interpolation == resize.Bicubic {
		a.refuseArgument("interpolation", "tensors have no bicubic warps, and it makes tensors of pictures", resize.Bilinear)
	}
	o.Fill = a.readPaint(&[3]float64{})
	return o
}

// drawParameters tells where the noise comes from: it has two numbers for each pixel.
func (o *elasticTransform) drawParameters(d rng, p *program, rec *Draw) error {
	if rec != nil {
		rec.Parameters = marshalCanonical(struct {
			Key     order.Key `json:"key"`
			Counter [3]uint32 `json:"counter"`
		}{d.Key, [3]uint32{d.Sample.Epoch, d.Sample.Index, d.Sample.Repeat}})
	}
	size := p.currentSize()
	for _, sigma := range o.Sigma {
		if taps := raster.ElasticTaps(sigma); taps/2 >= min(size.X, size.Y) {
			return fmt.Errorf("noise smoothed by %d×%d taps is too coarse for a picture of %d×%d pixels", taps, taps, size.X, size.Y)
		}
	}
	return p.addEffect(raster.Displace(o.Alpha, o.Sigma, raster.Sampling{Interpolation: o.Interpolation, Fill: o.Fill}, d.RNG), size)
}
