package raster

import "github.com/feedwater-io/feedwater/pipeline/pixel"

// PermuteChannels makes channel k of what was channel p[k].
func PermuteChannels(p [3]int) Effect {
	return Effect{InPlace: permuteInPlace, Numbers: [16]float64{float64(p[0]), float64(p[1]), float64(p[2])}}
}

func permuteInPlace(e *Effect, _ *Workspace, m *pixel.Image) {
	a, b, c := int(e.Numbers[0]), int(e.Numbers[1]), int(e.Numbers[2])
	for y := range m.H {
		row := m.Row(y)
		for i := 0; i < len(row); i += 3 {
			p := row[i : i+3 : i+3]
			p[0], p[1], p[2] = p[a], p[b], p[c]
		}
	}
}
