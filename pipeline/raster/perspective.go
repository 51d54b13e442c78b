package raster

import (
	"errors"
	"math"
)

// PerspectiveMatrix is the matrix that maps four points to four others, rounded to float32 as torchvision does. Its
// equations are those of a quotient, times the denominator.
func PerspectiveMatrix(from, to *[4][2]float64) (Matrix, error) {
	var rows [8][9]float64 // each: eight factors of the coefficients, and their sum
	for i := range from {
		x, y := from[i][0], from[i][1]
		for k, v := range to[i] {
			row := &rows[2*i+k]
			row[3*k], row[3*k+1], row[3*k+2] = x, y, 1
			row[6], row[7], row[8] = -v*x, -v*y, v
		}
	}
	m, ok := solveEquations(&rows)
	if !ok {
		return m, errors.New("three of the corners lie on a line, and no perspective moves them so")
	}
	for i := range m {
		m[i] = float64(float32(m[i])) + 0 // −0 becomes 0
	}
	return m, nil
}

// solveEquations eliminates, with the largest pivot of each column; false where there is none.
func solveEquations(rows *[8][9]float64) (x Matrix, ok bool) {
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
