package raster

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// CutOut paints a square grey, around a spot that is a share of the sides; up to about half of the shorter side, and
// cut off at the border.
func CutOut(level float64, spot [2]float32, size image.Point) Effect {
	half := (1 + int(level*float64(min(size.X, size.Y))*0.499)) / 2
	x, y := int(float64(spot[0])*float64(size.X)), int(float64(spot[1])*float64(size.Y))
	r := image.Rect(x-half, y-half, x+half, y+half).Intersect(image.Rectangle{Max: size})
	return Effect{InPlace: paintGrey, Numbers: [16]float64{float64(r.Min.X), float64(r.Min.Y), float64(r.Max.X), float64(r.Max.Y)}}
}

func paintGrey(e *Effect, _ *Workspace, m *pixel.Image) {
	for y := int(e.Numbers[1]); y < int(e.Numbers[3]); y++ {
		row := m.Row(y)[3*int(e.Numbers[0]) : 3*int(e.Numbers[2])]
		for i := range row {
			row[i] = 127
		}
	}
}
