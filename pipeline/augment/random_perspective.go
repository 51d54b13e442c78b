package augment

import (
	"errors"
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

type randomPerspective struct {
	DistortionScale float64     `json:"distortion_scale"`
	P               float64     `json:"p"`
	Interpolation   string      `json:"interpolation"`
	Fill            *[3]float64 `json:"fill"`
	policyDialect
}

func newRandomPerspective(a *arguments) op {
	o := &randomPerspective{DistortionScale: 0.5}
	if raw, ok := a.take("distortion_scale"); ok {
		o.DistortionScale = a.number("distortion_scale", raw, 0, 1)
	}
	o.P, o.Interpolation, o.Fill = a.probability(), a.warping("bilinear"), a.paint(&[3]float64{})
	o.policyDialect = a.policyDialect(o.Interpolation)
	return o
}

func (o *randomPerspective) resultOf(size image.Point, fixed bool) (image.Point, bool) {
	return size, fixed
}

func (o *randomPerspective) draw(d dice, p *program, rec *Draw) error {
	if !happens(d, o.P, rec) {
		return nil
	}
	m, err := o.matrix(d, p.size())
	if err != nil {
		return err
	}
	if rec != nil {
		rec.Parameters = canonical(struct {
			Coefficients matrix `json:"coefficients"`
		}{m})
	}
	b, size := o.brush(o.Interpolation, o.Fill), p.size()
	if b.tensor {
		return p.apply(perspectiveTensor(m, b, size), size)
	}
	return p.apply(warp(m, b, size), size)
}

// matrix is torchvision's make_params: where the four corners go, clockwise from the upper left one. Blocks 1 and 2 draw x and y of two each.
func (o *randomPerspective) matrix(d dice, size image.Point) (matrix, error) {
	w, h := size.X, size.Y
	boundX, boundY := int(o.DistortionScale*float64(w/2))+1, int(o.DistortionScale*float64(h/2))+1
	a, b := d.block(1), d.block(2)
	near := func(x uint32, bound int) float64 { return float64(order.Below(x, uint32(bound))) } //nolint:gosec // bound > 0
	far := func(x uint32, bound, side int) float64 { return float64(side-bound) + near(x, bound) }
	right, bottom := float64(w-1), float64(h-1)
	start := [4][2]float64{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}
	end := [4][2]float64{
		{near(a[0], boundX), near(a[1], boundY)},
		{far(a[2], boundX, w), near(a[3], boundY)},
		{far(b[0], boundX, w), far(b[1], boundY, h)},
		{near(b[2], boundX), far(b[3], boundY, h)},
	}
	return perspective(&end, &start)
}

// perspective is the matrix that maps four points to four others, rounded to float32 as torchvision does. Its equations are those of a
// quotient, times the denominator.
func perspective(from, to *[4][2]float64) (matrix, error) {
	var rows [8][9]float64 // each: eight factors of the coefficients, and their sum
	for i := range from {
		x, y := from[i][0], from[i][1]
		for k, v := range to[i] {
			row := &rows[2*i+k]
			row[3*k], row[3*k+1], row[3*k+2] = x, y, 1
			row[6], row[7], row[8] = -v*x, -v*y, v
		}
	}
	m, ok := solve(&rows)
	if !ok {
		return m, errors.New("three of the corners lie on a line, and no perspective moves them so")
	}
	for i := range m {
		m[i] = float64(float32(m[i])) + 0 // −0 becomes 0
	}
	return m, nil
}

// solve eliminates, with the largest pivot of each column; false where there is none.
func solve(rows *[8][9]float64) (x matrix, ok bool) {
	for c := range 8 {
		best := c
		for r := c + 1; r < 8; r++ {
			if math.Abs(rows[r][c]) > math.Abs(rows[best][c]) {
				best = r
			}
		}
		rows[c], rows[best] = rows[best], rows[c]
		if math.Abs(rows[c][c]) < 1e-9 {
			return x, false
		}
		for r := c + 1; r < 8; r++ {
			f := rows[r][c] / rows[c][c]
			for k := c; k < 9; k++ {
				rows[r][k] -= float64(f * rows[c][k])
			}
		}
	}
	for c := 7; c >= 0; c-- {
		sum := rows[c][8]
		for k := c + 1; k < 8; k++ {
			sum -= float64(rows[c][k] * x[k])
		}
		x[c] = sum / rows[c][c]
	}
	return x, true
}
