package raster

import (
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// blended are the effects that are mixed with the picture, by name.
var blended = [...]string{"AutoContrast", "Blur", "Equalize", "Invert", "Smooth"}

// BlendWith is Pillow's Image.blend of a picture and what an effect makes of it: 0 gives the picture, 1 the other.
func BlendWith(name string, share float64) Effect {
	for i, other := range blended {
		if other == name {
			return Effect{InPlace: blendInPlace, Numbers: [16]float64{share, float64(i)}}
		}
	}
	panic("raster: nothing to blend with by the name " + name)
}

func blendInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	other := &w.Pictures[0]
	CopyPixels(other, m)
	inner := Effect{InPlace: softenInPlace}
	switch blended[int(e.Numbers[1])] {
	case "AutoContrast":
		inner = Autocontrast()
	case "Equalize":
		inner = Equalize()
	case "Invert":
		inner = Invert()
	case "Smooth":
		inner = AdjustSharpness(0)
	}
	inner.InPlace(&inner, w, other)
	Blend(w, m, other, float32(e.Numbers[0]))
}

// Blend moves m by a share towards another picture of its size, as Pillow's Image.blend does.
func Blend(w *Workspace, m, other *pixel.Image, share float32) {
	t := fillShares(w, share)
	for y := 0; y < m.H && !w.IsStopped(); y++ {
		row, to := m.Row(y), other.Row(y)[:3*m.W]
		for i, v := range row {
			row[i] = clampByte(int32(float32(v) + t[(255+int32(to[i])-int32(v))&511]))
		}
	}
}

// softenInPlace is Pillow's BLUR: the mean of the sixteen pixels around a square of nine, rounded half up; two pixels
// at the border stay.
func softenInPlace(_ *Effect, w *Workspace, m *pixel.Image) {
	if m.W < 5 || m.H < 5 {
		return
	}
	size := 3 * m.W
	w.bytes = pixel.Grow(w.bytes, 5*size)
	var rows [5][]byte // as they were, the middle one of which is written
	for i := range rows {
		rows[i] = w.bytes[i*size:][:size]
		copy(rows[i], m.Row(i))
	}
	for y := 2; ; y++ {
		softenRow(m.Row(y), &rows)
		if y == m.H-3 {
			return
		}
		first := rows[0]
		copy(rows[:], rows[1:])
		copy(first, m.Row(y+3))
		rows[4] = first
	}
}

func softenRow(dst []byte, rows *[5][]byte) {
	for i := 6; i < len(dst)-6; i++ {
		sum := uint32(8)
		for _, r := range [2][]byte{rows[0], rows[4]} {
			sum += uint32(r[i-6]) + uint32(r[i-3]) + uint32(r[i]) + uint32(r[i+3]) + uint32(r[i+6])
		}
		for _, r := range rows[1:4] {
			sum += uint32(r[i-6]) + uint32(r[i+6])
		}
		dst[i] = byte(sum >> 4)
	}
}
