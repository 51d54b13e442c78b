package raster

import (
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/trig"
)

// RotationMatrix is the matrix of rotate, and the size of its result.
func RotationMatrix(angle float64, size image.Point, expand bool, center *[2]float64) (Matrix, image.Point) {
	w, h := float64(size.X), float64(size.Y)
	cx, cy := w/2, h/2
	if center != nil {
		cx, cy = center[0], center[1]
	}
	sine, cosine := trig.SineCosine(-trig.Radians(angle))
	sine, cosine = trig.Round15(sine), trig.Round15(cosine)
	m := Matrix{cosine, sine, 0, -sine, cosine, 0}
	x, y := m.mapPoint(-cx, -cy)
	m[2], m[5] = x+cx, y+cy
	if !expand {
		return m, size
	}
	to := m.boundCorners(w, h)
	m[2], m[5] = m.mapPoint(-(float64(to.X)-w)/2, -(float64(to.Y)-h)/2)
	return m, to
}

// mapPoint maps a point, by the affine part.
func (m *Matrix) mapPoint(x, y float64) (float64, float64) {
	return float64(m[0]*x) + float64(m[1]*y) + m[2], float64(m[3]*x) + float64(m[4]*y) + m[5]
}

// boundCorners is the size of what the corners of a w×h picture span, in whole pixels.
func (m *Matrix) boundCorners(w, h float64) image.Point {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, corner := range [4][2]float64{{0, 0}, {w, 0}, {w, h}, {0, h}} {
		x, y := m.mapPoint(corner[0], corner[1])
		low[0], high[0] = min(low[0], x), max(high[0], x)
		low[1], high[1] = min(low[1], y), max(high[1], y)
	}
	return image.Pt(int(math.Ceil(high[0])-math.Floor(low[0])), int(math.Ceil(high[1])-math.Floor(low[1])))
}

// An Affinity is what torchvision's affine takes.
type Affinity struct {
	Angle     float64 // degrees, with the clock
	Translate [2]int
	Scale     float64
	Shear     [2]float64 // degrees
}

// InverseMatrix maps points of the result to points of the picture. The order of the sums matters for the last bit.
func (a Affinity) InverseMatrix(center *[2]float64) Matrix {
	sine, cosine := trig.SineCosine(trig.Radians(a.Angle))
	shearX, shearY := trig.Radians(a.Shear[0]), trig.Radians(a.Shear[1])
	turned, upright := trig.SineCosine(trig.Radians(a.Angle) - shearY)
	cosineY, tangentX := trig.Cos(shearY), trig.Tan(shearX)
	k := upright / cosineY
	l := -(float64(k*tangentX) + sine)
	m := turned / cosineY
	n := cosine - float64(m*tangentX)
	cx, cy := center[0], center[1]
	x, y := cx+float64(a.Translate[0]), cy+float64(a.Translate[1])
	r := Matrix{n / a.Scale, -l / a.Scale, 0, -m / a.Scale, k / a.Scale, 0}
	r[2] = cx - float64(r[0]*x) - float64(r[1]*y)
	r[5] = cy - float64(r[3]*x) - float64(r[4]*y)
	return r
}

// A Matrix maps points of a result to points of the picture it is made of: x' = m₀x + m₁y + m₂ and y' = m₃x + m₄y + m₅,
// both divided by m₆x + m₇y + 1.
type Matrix [8]float64
