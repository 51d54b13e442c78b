package augment

import (
	"image"
	"math"
)

// The warps of this file and of grid.go are torchvision's for 8-bit tensors: a grid of positions from −1 to 1 in float32, and grid_sample. Both fuse what
// they multiply and add. Of the grid, which is a matrix product of MKL's, that holds for Intel's processors with AVX-512; elsewhere MKL
// rounds in between, and torchvision's last bits are others.

// tensorWarp is what the tweak of a warp does to a tensor of that size. The effect has none for a picture that stays as it is.
func (t tweak) tensorWarp(b brush, size image.Point) effect {
	m, a := t.Magnitude, affinity{scale: 1}
	center := &[2]float64{}
	switch t.Name {
	case "ShearX":
		a.shear[0] = degrees(atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "ShearY":
		a.shear[1] = degrees(atan(m))
		center = &[2]float64{-float64(size.X) * 0.5, -float64(size.Y) * 0.5}
	case "TranslateX":
		a.translate[0] = int(m)
	case "TranslateY":
		a.translate[1] = int(m)
	case "Rotate":
		angle := modulo360(m)
		switch {
		case angle == 0:
			return effect{}
		case angle == 90 && size.X == size.Y, angle == 270 && size.X == size.Y:
			return quarter(angle)
		}
		a.angle = -angle
	}
	return warpTensor(a.inverse(center), b, size)
}

// warpTensor is torchvision's affine_image, of a matrix around the middle. fill is null or a colour, which differ.
func warpTensor(m matrix, b brush, size image.Point) effect {
	e := effect{across: gridNearest}
	if b.interpolation == "bilinear" {
		e.across = gridBilinear
	}
	for i := range 3 {
		e.numbers[i] = float64(float32(m[i]) / float32(0.5*float64(size.X)))
		e.numbers[3+i] = float64(float32(m[3+i]) / float32(0.5*float64(size.Y)))
	}
	e.setFill(b.fill)
	return e
}

// setFill says what a warp of a tensor paints outside: null or a colour.
func (e *effect) setFill(fill *[3]float64) {
	if fill != nil {
		e.numbers[7] = 1
		copy(e.numbers[8:], fill[:])
	}
}

// rotateTensor is torchvision's rotate_image: angle in degrees, against the clock, around center or the middle.
func (p *program) rotateTensor(angle float64, b brush, expand bool, center *[2]float64) error {
	angle, size := modulo360(angle), p.size()
	if done, err := p.turn(angle, expand, center); done {
		return err
	}
	m, to := affinity{angle: -angle, scale: 1}.inverse(fromMiddle(center, size)), size
	if expand {
		to = m.boundsOfTensor(size)
	}
	return p.apply(warpTensor(m, b, size), to)
}

// fromMiddle is a center as tensors' matrices want it.
func fromMiddle(center *[2]float64, size image.Point) *[2]float64 {
	if center == nil {
		return &[2]float64{}
	}
	return &[2]float64{center[0] - float64(float64(size.X)*0.5), center[1] - float64(float64(size.Y)*0.5)}
}

// boundsOfTensor is what the corners of a picture span, as torchvision counts it: in float32, cut to ten thousandths of a pixel. MKL
// takes so small a product in another way than a grid: it adds y last, and rounds every step.
func (m *matrix) boundsOfTensor(size image.Point) image.Point {
	var sides [2]int
	for k, half := range [2]float32{float32(size.X) * 0.5, float32(size.Y) * 0.5} {
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, corner := range [4][2]float32{{-1, -1}, {-1, 1}, {1, 1}, {1, -1}} {
			x, y := corner[0]*float32(size.X)*0.5, corner[1]*float32(size.Y)*0.5
			v := float32(float32(x*float32(m[3*k]))+float32(m[3*k+2])) + float32(y*float32(m[3*k+1]))
			low, high = min(low, v), max(high, v)
		}
		sides[k] = int(math.Ceil(tenThousandths(high+half)) - math.Floor(tenThousandths(low+half)))
	}
	return image.Pt(sides[0], sides[1])
}

func tenThousandths(x float32) float64 {
	return float64(float32(float32(math.Trunc(float64(float32(x*10000)))) * 1e-4))
}

// perspectiveTensor is torchvision's perspective_image.
func perspectiveTensor(m matrix, b brush, size image.Point) effect {
	e := warpTensor(m, b, size)
	e.numbers[6], e.numbers[11], e.numbers[12] = 1, m[6], m[7]
	return e
}
