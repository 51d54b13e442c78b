package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// addRotation is Pillow's Image.rotate: angle in degrees, against the clock, around center or the middle.
func (p *program) addRotation(angle float64, b raster.Sampling, expand bool, center *[2]float64) error {
	if b.Tensor {
		return p.addRotationTensor(angle, b, expand, center)
	}
	angle, size := trig.Modulo360(angle), p.currentSize()
	if done, err := p.addTurn(angle, expand, center); done {
		return err
	}
	m, to := raster.RotationMatrix(angle, size, expand, center)
	return p.addEffect(raster.Warp(m, b, to), to)
}

// addTurn rotates around the middle by quarters, where that only moves pixels, and tells whether it did.
func (p *program) addTurn(angle float64, expand bool, center *[2]float64) (done bool, err error) {
	size := p.currentSize()
	switch {
	case center != nil:
		return false, nil
	case angle == 0:
		return true, nil
	case angle == 180:
		if err := p.addFlipX(); err != nil {
			return true, err
		}
		return true, p.addFlipY()
	case (angle == 90 || angle == 270) && (expand || size.X == size.Y):
		return true, p.addEffect(raster.TurnQuarter(angle), image.Pt(size.Y, size.X))
	}
	return false, nil
}

// addAffine is torchvision's function, around center or the middle.
func (p *program) addAffine(a raster.Affinity, b raster.Sampling, center *[2]float64) error {
	size := p.currentSize()
	if b.Tensor {
		return p.addEffect(raster.WarpTensor(a.InverseMatrix(raster.FromMiddle(center, size)), b, size), size)
	}
	if center == nil {
		center = &[2]float64{float64(size.X) * 0.5, float64(size.Y) * 0.5}
	}
	return p.addEffect(raster.Warp(a.InverseMatrix(center), b, size), size)
}

// addRotationTensor is torchvision's rotate_image: angle in degrees, against the clock, around center or the middle.
func (p *program) addRotationTensor(angle float64, b raster.Sampling, expand bool, center *[2]float64) error {
	angle, size := trig.Modulo360(angle), p.currentSize()
	if done, err := p.addTurn(angle, expand, center); done {
		return err
	}
	m, to := raster.Affinity{Angle: -angle, Scale: 1}.InverseMatrix(raster.FromMiddle(center, size)), size
	if expand {
		to = m.BoundsOfTensor(size)
	}
	return p.addEffect(raster.WarpTensor(m, b, size), to)
}
