package raster

import (
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// AdjustSharpness mixes a blurred picture with the picture: 0 blurs, 1 is the picture, 2 sharpens.
func AdjustSharpness(factor float64) Effect {
	return Effect{InPlace: sharpenInPlace, Numbers: [16]float64{factor}}
}

// sharpenInPlace blurs by Pillow's SMOOTH: weights of 1, in the middle 5, by 13; the border stays as it is.
func sharpenInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	if m.W < 3 || m.H < 3 {
		return
	}
	factor, size := float32(e.Numbers[0]), 3*m.W
	t := fillShares(w, factor)
	values := size - 6 // between the first and the last pixel
	sharpen := w.vectorSharpen(values, factor)
	w.bytes = pixel.Grow(w.bytes, 2*size)
	above, here := w.bytes[:size], w.bytes[size:]
	copy(above, m.Row(0))
	for y := 1; y < m.H-1; y++ {
		row := m.Row(y)
		copy(here, row)
		below := m.Row(y + 1)
		if sharpen != nil {
			sharpen(&row[3], &above[0], &here[0], &below[0], values, factor)
		} else {
			sharpenRow(row, above, here, below, t)
		}
		above, here = here, above
	}
}

// vectorSharpen is the kernel that sharpens so many values by a factor; nil: none does.
func (w *Workspace) vectorSharpen(values int, factor float32) func(dst, above, here, below *byte, n int, factor float32) {
	switch {
	case !kernel.Vector(w.Level) || values < 32 || !isMixable(factor):
		return nil
	case w.Level == kernel.AVX512 && values >= 64:
		return sharpenBytesAVX512
	}
	return sharpenBytes
}

// sharpenRow writes a row but for its first and last pixel. Pillow's blur is the truncated float32 sum of ½ and nine
// products; n ÷ 13 + ½ is never closer than 1/26 to a whole number, so integers give the same.
func sharpenRow(dst, above, here, below []byte, t *[512]float32) {
	right, n := above[3:], len(above)-3
	here, hereRight, belowRight, below := here[:n], here[3:][:n], below[3:][:n], below[:n]
	above, dst = above[:n], dst[:n]
	for c := range 3 {
		was := uint32(above[c]) + uint32(here[c]) + uint32(below[c])
		is := uint32(right[c]) + uint32(hereRight[c]) + uint32(belowRight[c])
		for i := c + 3; i < len(right); i += 3 {
			next := uint32(right[i]) + uint32(hereRight[i]) + uint32(belowRight[i])
			p := uint32(here[i])
			blur := (2*(was+is+next+4*p) + 13) / 26
			dst[i] = clampByte(int32(float32(int32(blur)) + t[(255+p-blur)&511]))
			was, is = is, next
		}
	}
}
