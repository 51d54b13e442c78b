package raster

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// CutCorners makes crops below each other in one picture: upper left, upper right, lower left, lower right, and the one
// that begins at middle, each of dst's width and of height. The sixth and those behind it are of the picture mirrored,
// or upside down.
func CutCorners(height int, middle image.Point, upsideDown bool) Effect {
	e := Effect{Across: cutCorners, Numbers: [16]float64{float64(height), 0, float64(middle.X), float64(middle.Y)}}
	if upsideDown {
		e.Numbers[1] = 1
	}
	return e
}

func cutCorners(e *Effect, _ *Workspace, dst, src *pixel.Image) {
	w, h := dst.W, int(e.Numbers[0])
	right, bottom := src.W-w, src.H-h
	places := [5]image.Point{{0, 0}, {right, 0}, {0, bottom}, {right, bottom}, {int(e.Numbers[2]), int(e.Numbers[3])}}
	for y := range dst.H {
		crop, at := y/h, places[y/h%5]
		at.Y += y % h
		to := dst.Row(y)
		switch {
		case crop < 5:
			copy(to, src.Row(at.Y)[3*at.X:])
		case e.Numbers[1] != 0:
			copy(to, src.Row(src.H - 1 - at.Y)[3*at.X:])
		default:
			mirrorRow(to, src.Row(at.Y)[3*(right-at.X):][:len(to)])
		}
	}
}

// mirrorRow copies a row's pixels from right to left.
func mirrorRow(dst, src []byte) {
	for i := 0; i < len(dst); i += 3 {
		copy(dst[i:i+3], src[len(src)-3-i:])
	}
}
