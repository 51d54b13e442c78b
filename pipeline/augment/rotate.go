package augment

import (
	"image"
	"math"
)

// rotate is Pillow's Image.rotate: angle in degrees, against the clock, around center or the middle.
func (p *program) rotate(angle float64, b brush, expand bool, center *[2]float64) error {
	if b.tensor {
		return p.rotateTensor(angle, b, expand, center)
	}
	angle, size := modulo360(angle), p.size()
	if done, err := p.turn(angle, expand, center); done {
		return err
	}
	m, to := rotation(angle, size, expand, center)
	return p.apply(warp(m, b, to), to)
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
		return true, p.apply(quarter(angle), image.Pt(size.Y, size.X))
	}
	return false, nil
}

// rotation is the matrix of rotate, and the size of its result.
func rotation(angle float64, size image.Point, expand bool, center *[2]float64) (matrix, image.Point) {
	w, h := float64(size.X), float64(size.Y)
	cx, cy := w/2, h/2
	if center != nil {
		cx, cy = center[0], center[1]
	}
	s, c := sineCosine(-radians(angle))
	sine, cosine := rounded15(s.hi), rounded15(c.hi)
	m := matrix{cosine, sine, 0, -sine, cosine, 0}
	x, y := m.at(-cx, -cy)
	m[2], m[5] = x+cx, y+cy
	if !expand {
		return m, size
	}
	to := m.bounds(w, h)
	m[2], m[5] = m.at(-(float64(to.X)-w)/2, -(float64(to.Y)-h)/2)
	return m, to
}

// at maps a point, by the affine part.
func (m *matrix) at(x, y float64) (float64, float64) {
	return float64(m[0]*x) + float64(m[1]*y) + m[2], float64(m[3]*x) + float64(m[4]*y) + m[5]
}

// bounds is the size of what the corners of a w×h picture span, in whole pixels.
func (m *matrix) bounds(w, h float64) image.Point {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, corner := range [4][2]float64{{0, 0}, {w, 0}, {w, h}, {0, h}} {
		x, y := m.at(corner[0], corner[1])
		low[0], high[0] = min(low[0], x), max(high[0], x)
		low[1], high[1] = min(low[1], y), max(high[1], y)
	}
	return image.Pt(int(math.Ceil(high[0])-math.Floor(low[0])), int(math.Ceil(high[1])-math.Floor(low[1])))
}

// An affinity is what torchvision's affine takes.
type affinity struct {
	angle     float64 // degrees, with the clock
	translate [2]int
	scale     float64
	shear     [2]float64 // degrees
}

// affine is torchvision's function, around center or the middle.
func (p *program) affine(a affinity, b brush, center *[2]float64) error {
	size := p.size()
	if b.tensor {
		return p.apply(warpTensor(a.inverse(fromMiddle(center, size)), b, size), size)
	}
	if center == nil {
		center = &[2]float64{float64(size.X) * 0.5, float64(size.Y) * 0.5}
	}
	return p.apply(warp(a.inverse(center), b, size), size)
}

// inverse maps points of the result to points of the picture. The order of the sums matters for the last bit.
func (a affinity) inverse(center *[2]float64) matrix {
	sine, cosine := sineCosine(radians(a.angle))
	shearX, shearY := radians(a.shear[0]), radians(a.shear[1])
	turned, upright := sineCosine(radians(a.angle) - shearY)
	cosineY, tangentX := cos(shearY), tan(shearX)
	k := upright.hi / cosineY
	l := -(float64(k*tangentX) + sine.hi)
	m := turned.hi / cosineY
	n := cosine.hi - float64(m*tangentX)
	cx, cy := center[0], center[1]
	x, y := cx+float64(a.translate[0]), cy+float64(a.translate[1])
	r := matrix{n / a.scale, -l / a.scale, 0, -m / a.scale, k / a.scale, 0}
	r[2] = cx - float64(r[0]*x) - float64(r[1]*y)
	r[5] = cy - float64(r[3]*x) - float64(r[4]*y)
	return r
}
