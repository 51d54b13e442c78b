package raster

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// AddWeighted adds weight·row to sums; without add it sets them.
func AddWeighted(sums []float32, row []byte, weight float32, add bool) {
	var t [256]float32
	for v := range t {
		t[v] = float32(weight * float32(v))
	}
	sums = sums[:len(row)]
	if !add {
		clear(sums)
	}
	for i, v := range row {
		sums[i] += t[v]
	}
}

// CopyPixels makes dst a copy of src.
func CopyPixels(dst, src *pixel.Image) {
	dst.Reset(src.W, src.H)
	for y := range src.H {
		copy(dst.Row(y), src.Row(y))
	}
}
