package augment

import (
	"image"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// blended are the effects that CTAugment mixes with the picture, by name.
var blended = [...]string{"AutoContrast", "Blur", "Equalize", "Invert", "Smooth"}

// blendWith is Pillow's Image.blend of a picture and what an effect makes of it: 0 gives the picture, 1 the other.
func blendWith(name string, share float64) effect {
	for i, other := range blended {
		if other == name {
			return effect{inPlace: blend, numbers: [16]float64{share, float64(i)}}
		}
	}
	panic("augment: nothing to blend with by the name " + name)
}

func blend(e *effect, w *workspace, m *pixel.Image) {
	other := &w.pictures[0]
	other.Reset(m.W, m.H)
	for y := range m.H {
		copy(rowOf(other, y), rowOf(m, y))
	}
	inner := effect{inPlace: soften}
	switch name := blended[int(e.numbers[1])]; name {
	case "Smooth":
		inner = adjustSharpness(0)
	case "Blur":
	default:
		inner = tweak{Name: name}.effect()
	}
	inner.inPlace(&inner, w, other)
	t := shares(w, float32(e.numbers[0]))
	for y := range m.H {
		row, to := rowOf(m, y), rowOf(other, y)[:3*m.W]
		for i, v := range row {
			row[i] = clampByte(int32(float32(v) + t[(255+int32(to[i])-int32(v))&511]))
		}
	}
}

// soften is Pillow's BLUR: the mean of the sixteen pixels around a square of nine, rounded half up; two pixels at the border stay.
func soften(_ *effect, w *workspace, m *pixel.Image) {
	if m.W < 5 || m.H < 5 {
		return
	}
	size := 3 * m.W
	w.bytes = pixel.Grow(w.bytes, 5*size)
	var rows [5][]byte // as they were, the middle one of which is written
	for i := range rows {
		rows[i] = w.bytes[i*size:][:size]
		copy(rows[i], rowOf(m, i))
	}
	for y := 2; ; y++ {
		softenRow(rowOf(m, y), &rows)
		if y == m.H-3 {
			return
		}
		first := rows[0]
		copy(rows[:], rows[1:])
		copy(first, rowOf(m, y+3))
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

// cutOut paints a square grey, around a spot that is a share of the sides; up to about half of the shorter side, and cut off at the border.
func cutOut(level float64, spot [2]float32, size image.Point) effect {
	half := (1 + int(level*float64(min(size.X, size.Y))*0.499)) / 2
	x, y := int(float64(spot[0])*float64(size.X)), int(float64(spot[1])*float64(size.Y))
	r := image.Rect(x-half, y-half, x+half, y+half).Intersect(image.Rectangle{Max: size})
	return effect{inPlace: greyOut, numbers: [16]float64{float64(r.Min.X), float64(r.Min.Y), float64(r.Max.X), float64(r.Max.Y)}}
}

func greyOut(e *effect, _ *workspace, m *pixel.Image) {
	for y := int(e.numbers[1]); y < int(e.numbers[3]); y++ {
		row := rowOf(m, y)[3*int(e.numbers[0]) : 3*int(e.numbers[2])]
		for i := range row {
			row[i] = 127
		}
	}
}
