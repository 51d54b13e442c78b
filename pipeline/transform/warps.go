package transform

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// rotate is Pillow's Image.rotate: angle in degrees, against the clock, around center or the middle.
func (p *program) rotate(angle float64, b raster.Sampling, expand bool, center *[2]float64) error {
	if b.Tensor {
		return p.rotateTensor(angle, b, expand, center)
	}
	angle, size := trig.Modulo360(angle), p.size()
	if done, err := p.turn(angle, expand, center); done {
		return err
	}
	m, to := raster.RotationMatrix(angle, size, expand, center)
	return p.apply(raster.Warp(m, b, to), to)
}

// turn rotates around the middle by quarters, where that only moves pixels, and tells whether it did.
func (p *program) turn(angle float64, expand bool, center *[2]float64) (done bool, err error) {
	size := p.size()
	switch {
	case center != nil:
		return false, nil
	case angle == 0:
		return true, nil
	case angle == 180:
		if err := p.flipX(); err != nil {
			return true, err
		}
		return true, p.flipY()
	case (angle == 90 || angle == 270) && (expand || size.X == size.Y):
		return true, p.apply(raster.TurnQuarter(angle), image.Pt(size.Y, size.X))
	}
	return false, nil
}

// affine is torchvision's function, around center or the middle.
func (p *program) affine(a raster.Affinity, b raster.Sampling, center *[2]float64) error {
	size := p.size()
	if b.Tensor {
		return p.apply(raster.WarpTensor(a.InverseMatrix(raster.FromMiddle(center, size)), b, size), size)
	}
	if center == nil {
		center = &[2]float64{float64(size.X) * 0.5, float64(size.Y) * 0.5}
	}
	return p.apply(raster.Warp(a.InverseMatrix(center), b, size), size)
}

// rotateTensor is torchvision's rotate_image: angle in degrees, against the clock, around center or the middle.
func (p *program) rotateTensor(angle float64, b raster.Sampling, expand bool, center *[2]float64) error {
	angle, size := trig.Modulo360(angle), p.size()
	if done, err := p.turn(angle, expand, center); done {
		return err
	}
	m, to := raster.Affinity{Angle: -angle, Scale: 1}.InverseMatrix(raster.FromMiddle(center, size)), size
	if expand {
		to = m.BoundsOfTensor(size)
	}
	return p.apply(raster.WarpTensor(m, b, size), to)
}
