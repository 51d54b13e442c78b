package raster

import (
	"math/bits"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The effects of this file are those of colour.go as torchvision has them for 8-bit tensors on a processor with FMA:
// what mixes two values is one float32 product and one fused sum. Sums of a value and a product of few bits are exact
// in float64, so that rounding them to float32 fuses. Posterize, equalize and invert are alike. Hues are in
// hue_tensor.go.

// AdjustBrightnessTensor is AdjustBrightness on tensors.
func AdjustBrightnessTensor(factor float64) Effect {
	return Effect{InPlace: brightenTensor, Numbers: [16]float64{factor}}
}

// AdjustContrastTensor is AdjustContrast on tensors.
func AdjustContrastTensor(factor float64) Effect {
	return Effect{InPlace: contrastTensor, Numbers: [16]float64{factor}}
}

// AdjustSaturationTensor is AdjustSaturation on tensors.
func AdjustSaturationTensor(factor float64) Effect {
	return Effect{InPlace: saturateTensor, Numbers: [16]float64{factor}}
}

// AdjustHueTensor is AdjustHue on tensors.
func AdjustHueTensor(factor float64) Effect {
	return Effect{InPlace: turnHueTensor, Numbers: [16]float64{factor}}
}

// AdjustSharpnessTensor is AdjustSharpness on tensors.
func AdjustSharpnessTensor(factor float64) Effect {
	return Effect{InPlace: sharpenTensor, Numbers: [16]float64{factor}}
}

// GrayscaleTensor is Grayscale on tensors.
func GrayscaleTensor() Effect { return Effect{InPlace: desaturateTensor} }

// AutocontrastTensor is Autocontrast on tensors.
func AutocontrastTensor() Effect { return Effect{InPlace: stretchTensor} }

// SolarizeTensor is Solarize on tensors. It compares in float32.
func SolarizeTensor(threshold float64) Effect { return Solarize(float64(float32(threshold))) }

// desaturateTensor makes all channels the grey.
func desaturateTensor(_ *Effect, w *Workspace, m *pixel.Image) {
	changePixels(w, m, (*Workspace).fusedPixels, setTensorGreys, desaturateTensorPixels)
}

func desaturateTensorPixels(run []byte) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		l := byte(greyOfTensor(p))
		p[0], p[1], p[2] = l, l, l
	}
}

func brightenTensor(e *Effect, w *Workspace, m *pixel.Image) { blendTable(w, m, 0, e.Numbers[0]) }

func contrastTensor(e *Effect, w *Workspace, m *pixel.Image) {
	blendTable(w, m, meanOfTensor(w, m), e.Numbers[0])
}

// blendTable makes factor·v + (1−factor)·other of every value v.
func blendTable(w *Workspace, m *pixel.Image, other float32, factor float64) {
	t, f, rest := &w.tables[0], float32(factor), float32(1-factor)
	for v := range t {
		t[v] = clampFloat(order.Fused(other, rest, float32(float32(v)*f)))
	}
	lookUp(w, m, t)
}

// clampFloat is a value's integer part, between 0 and 255.
func clampFloat(x float32) byte { return byte(int32(min(max(x, 0), 255))) }

// greyOfTensor is the integer part of torchvision's grey.
func greyOfTensor(p []byte) int32 {
	x := float32(float32(p[0]) * 0.2989)
	x = float32(float64(x) + float64(float64(p[1])*float64(float32(0.587))))
	return int32(float32(float64(x) + float64(float64(p[2])*float64(float32(0.114)))))
}

func saturateTensor(e *Effect, w *Workspace, m *pixel.Image) {
	w.floats = pixel.Grow(w.floats, 256)
	own, f, rest := (*[256]float32)(w.floats), float32(e.Numbers[0]), float32(1-e.Numbers[0])
	for v := range own {
		own[v] = float32(float32(v) * f)
	}
	changePixels(w, m, (*Workspace).fusedPixels, func(p *byte, n int) { mixTensorGreys(p, n, f, rest) },
		func(run []byte) { mixPixels(run, own, float64(rest)) })
}

func mixPixels(run []byte, own *[256]float32, rest float64) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		other := float64(float64(greyOfTensor(p)) * rest)
		p[0] = clampFloat(float32(float64(own[p[0]]) + other))
		p[1] = clampFloat(float32(float64(own[p[1]]) + other))
		p[2] = clampFloat(float32(float64(own[p[2]]) + other))
	}
}

// sharpenTensor blurs by weights of 1, in the middle 5, by 13, rounded; the border stays as it is.
func sharpenTensor(e *Effect, w *Workspace, m *pixel.Image) {
	if m.W < 3 || m.H < 3 {
		return
	}
	rest, size := float64(float32(1-e.Numbers[0])), 3*m.W
	w.bytes = pixel.Grow(w.bytes, 2*size)
	above, here := w.bytes[:size], w.bytes[size:]
	copy(above, m.Row(0))
	for y := 1; y < m.H-1; y++ {
		row, below := m.Row(y), m.Row(y+1)
		copy(here, row)
		for i := 3; i < size-3; i++ {
			p := int32(here[i])
			n := 4*p + int32(above[i-3]) + int32(above[i]) + int32(above[i+3]) + int32(here[i-3]) + p + int32(here[i+3]) +
				int32(below[i-3]) + int32(below[i]) + int32(below[i+3])
			row[i] = clampFloat(float32(float64(p) + float64(float64((2*n+13)/26-p)*rest)))
		}
		above, here = here, above
	}
}

func stretchTensor(_ *Effect, w *Workspace, m *pixel.Image) {
	lows, highs := rangesOf(w, m)
	for c := range lows {
		low, high := lows[c], highs[c]
		scale := float32(1)
		if high > low {
			scale = float32(float32(high-low) * float32(1.0/255))
		} else {
			low = 0
		}
		for v := range w.tables[c] {
			w.tables[c][v] = clampFloat(float32(v-low) / scale)
		}
	}
	lookUpEach(w, m)
}

// meanOfTensor is the mean grey, summed up as one thread of torch does.
func meanOfTensor(w *Workspace, m *pixel.Image) float32 {
	grey, sum := findGreysOfTensor(w, m), 0
	for _, g := range grey {
		sum += int(g)
	}
	if sum < 1<<24 { // exact in any order
		return float32(sum) / float32(len(grey))
	}
	return torchSum(grey) / float32(len(grey))
}

// findGreysOfTensor returns the greys of all pixels, which are the workspace's.
func findGreysOfTensor(w *Workspace, m *pixel.Image) []byte {
	w.bytes = pixel.Grow(w.bytes, m.W*m.H)
	grey := w.bytes
	for y := range m.H {
		row := m.Row(y)
		if n := w.fusedPixels(len(row)); n > 0 {
			findTensorGreys(&grey[0], &row[0], n)
			row, grey = row[3*n:], grey[n:]
		}
		for i := 0; i < len(row); i += 3 {
			grey[i/3] = byte(greyOfTensor(row[i : i+3 : i+3]))
		}
		grey = grey[len(row)/3:]
	}
	return w.bytes
}

// torchSum adds up values in float32, in torch's order: 32 lanes, each a cascade of four sums, of which each takes the
// one before in after so many steps; then the lanes. There are many values.
func torchSum(values []byte) float32 {
	const lanes, width = 8, 32
	var sums [4][width]float32
	rows := len(values) / width
	level := max(4, bits.Len(uint(rows-1))/4) //nolint:gosec // rows > 0
	for i := 1; i <= rows; i++ {
		row := values[(i-1)*width:][:width]
		for k, v := range row {
			sums[0][k] += float32(v)
		}
		if i&(1<<level-1) != 0 {
			continue
		}
		for j := 1; j < 4; j++ {
			for k := range width {
				sums[j][k] += sums[j-1][k]
			}
			sums[j-1] = [width]float32{}
			if i&((1<<level-1)<<(j*level)) != 0 {
				break
			}
		}
	}
	for j := 1; j < 4; j++ {
		for k := range width {
			sums[0][k] += sums[j][k]
		}
	}
	s, rest := &sums[0], values[rows*width:]
	for ; len(rest) >= lanes; rest = rest[lanes:] {
		for k := range lanes {
			s[k] += float32(rest[k])
		}
	}
	for k := lanes; k < width; k++ {
		s[k%lanes] += s[k]
	}
	total := float32(0)
	for _, v := range rest {
		total += float32(v)
	}
	for k := range lanes {
		total += s[k]
	}
	return total
}
