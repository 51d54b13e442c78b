package transform

import (
	"fmt"

	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// maxKernel is far beyond any real kernel: a tenth of the picture's side is usual.
const maxKernel = 127

// gaussianBlurOp blurs as torchvision does tensors, and PIL images too.
type gaussianBlurOp struct {
	sameSize
	Kernel [2]int     `json:"kernel_size"` // width, height
	Sigma  [2]float64 `json:"sigma"`
}

func newGaussianBlur(a *arguments) op {
	o := &gaussianBlurOp{Sigma: [2]float64{0.1, 2}, Kernel: [2]int{3, 3}}
	if raw, ok := a.takeArgument("kernel_size"); !ok {
		a.refuseArgument("kernel_size", "is missing", 23)
	} else {
		o.setKernel(a, a.parseWholes("kernel_size", raw))
	}
	const least = 1e-6
	if ends := a.readEnds("sigma", least, 1000); ends != nil {
		o.Sigma = *ends
	}
	return o
}

func (o *gaussianBlurOp) setKernel(a *arguments, sizes []int) {
	o.Kernel = [2]int{sizes[0], sizes[len(sizes)-1]}
	for _, n := range sizes {
		if n%2 == 0 || n > maxKernel {
			a.refuseArgument("kernel_size", fmt.Sprintf("must be odd and at most %d, got %d", maxKernel, n), min(n|1, maxKernel))
		}
	}
}

func (o *gaussianBlurOp) drawParameters(d rng, p *program, rec *Draw) error {
	sigma := drawUniform(d.Block(0)[0], o.Sigma)
	if rec != nil {
		rec.Parameters = marshalCanonical(map[string][2]float64{"sigma": {sigma, sigma}})
	}
	if size := p.currentSize(); o.Kernel[0]/2 >= size.X || o.Kernel[1]/2 >= size.Y {
		return fmt.Errorf("a kernel of %d×%d is too large for a picture of %d×%d pixels", o.Kernel[0], o.Kernel[1], size.X, size.Y)
	}
	return p.addEffect(raster.GaussianBlur(o.Kernel[0], o.Kernel[1], sigma), p.currentSize())
}
