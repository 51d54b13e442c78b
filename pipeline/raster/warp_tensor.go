package raster

import (
	"image"
	"math"
)

// The warps of this file and of grid.go are torchvision's for 8-bit tensors: a grid of positions from −1 to 1 in
// float32, and grid_sample. Both fuse what they multiply and add. Of the grid, which is a matrix product of MKL's, that
// holds for Intel's processors with AVX-512; elsewhere MKL rounds in between, and torchvision's last bits are others.

// WarpTensor is torchvision's affine_image, of a matrix around the middle. fill is null or a colour, which differ.
func WarpTensor(m Matrix, b Sampling, size image.Point) Effect {
	e := Effect{Across: gridNearest}
	if b.Interpolation == "bilinear" {
		e.Across = gridBilinear
	}
	for i := range 3 {
		e.Numbers[i] = float64(float32(m[i]) / float32(0.5*float64(size.X)))
		e.Numbers[3+i] = float64(float32(m[3+i]) / float32(0.5*float64(size.Y)))
	}
	e.setFill(b.Fill)
	return e
}

// setFill says what a warp of a tensor paints outside: null or a colour.
func (e *Effect) setFill(fill *[3]float64) {
	if fill != nil {
		e.Numbers[7] = 1
		copy(e.Numbers[8:], fill[:])
	}
}

// FromMiddle is a center as tensors' matrices want it.
func FromMiddle(center *[2]float64, size image.Point) *[2]float64 {
	if center == nil {
		return &[2]float64{}
	}
	return &[2]float64{center[0] - float64(float64(size.X)*0.5), center[1] - float64(float64(size.Y)*0.5)}
}

// BoundsOfTensor is what the corners of a picture span, as torchvision counts it: in float32, cut to ten thousandths of
// a pixel. MKL takes so small a product in another way than a grid: it adds y last, and rounds every step.
func (m *Matrix) BoundsOfTensor(size image.Point) image.Point {
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

// WarpPerspectiveTensor is torchvision's perspective_image.
func WarpPerspectiveTensor(m Matrix, b Sampling, size image.Point) Effect {
	e := WarpTensor(m, b, size)
	e.Numbers[6], e.Numbers[11], e.Numbers[12] = 1, m[6], m[7]
	return e
}
