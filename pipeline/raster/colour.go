package raster

import (
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The effects of this file and of hue.go and sharpness.go change colours as Pillow's ImageEnhance and ImageOps do. A
// factor is held in float32, and every product and every sum is rounded to float32.

// AdjustBrightness mixes black with the picture: 0 gives black, 1 the picture, 2 twice as bright.
func AdjustBrightness(factor float64) Effect {
	return Effect{InPlace: brightenInPlace, Numbers: [16]float64{factor}}
}

// AdjustContrast mixes the mean grey with the picture.
func AdjustContrast(factor float64) Effect {
	return Effect{InPlace: contrastInPlace, Numbers: [16]float64{factor}}
}

// AdjustSaturation mixes each pixel's grey with the pixel.
func AdjustSaturation(factor float64) Effect {
	return Effect{InPlace: saturateInPlace, Numbers: [16]float64{factor}}
}

// Grayscale makes all channels the grey.
func Grayscale() Effect { return Effect{InPlace: desaturateInPlace} }

// Posterize keeps the upper bits, at most 8, of every value; of 0 and less nothing is left.
func Posterize(bits int) Effect {
	return Effect{InPlace: posterizeInPlace, Numbers: [16]float64{float64(bits)}}
}

// Solarize inverts the values from threshold on.
func Solarize(threshold float64) Effect {
	return Effect{InPlace: invertFrom, Numbers: [16]float64{threshold}}
}

// SolarizeAdd makes the values below 128 brighter by so many levels.
func SolarizeAdd(levels int) Effect {
	return Effect{InPlace: addBelowMiddle, Numbers: [16]float64{float64(levels)}}
}

// Invert makes negatives.
func Invert() Effect { return Effect{InPlace: invertFrom, Numbers: [16]float64{0}} }

// Autocontrast stretches each channel to the whole range.
func Autocontrast() Effect { return Effect{InPlace: stretchInPlace} }

// Equalize makes each channel's histogram even.
func Equalize() Effect { return Effect{InPlace: equalizeInPlace} }

func brightenInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	mixTable(&w.tables[0], 0, float32(e.Numbers[0]))
	lookUp(w, m, &w.tables[0])
}

func contrastInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	mixTable(&w.tables[0], meanGrey(w, m), float32(e.Numbers[0]))
	lookUp(w, m, &w.tables[0])
}

func posterizeInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	drop := 8 - int(e.Numbers[0])
	t := &w.tables[0]
	for i := range t {
		t[i] = byte(i >> drop << drop)
	}
	lookUp(w, m, t)
}

func invertFrom(e *Effect, w *Workspace, m *pixel.Image) {
	t := &w.tables[0]
	for i := range t {
		t[i] = byte(i)
		if float64(i) >= e.Numbers[0] {
			t[i] = byte(255 - i)
		}
	}
	lookUp(w, m, t)
}

func addBelowMiddle(e *Effect, w *Workspace, m *pixel.Image) {
	t := &w.tables[0]
	for i := range t {
		t[i] = byte(i)
		if i < 128 {
			t[i] = byte(min(255, i+int(e.Numbers[0])))
		}
	}
	lookUp(w, m, t)
}

func saturateInPlace(e *Effect, w *Workspace, m *pixel.Image) {
	factor := float32(e.Numbers[0])
	if w.Level == kernel.AVX512 && isMixable(factor) {
		eachRun(m, func(p *byte, size int) { mixGreysAVX512(p, size/3, factor) })
		return
	}
	t := fillShares(w, factor)
	changePixels(w, m, (*Workspace).vectorPixels, func(p *byte, n int) { mixGreys(p, n, factor) }, func(run []byte) { saturatePixels(run, t) })
}

func saturatePixels(run []byte, t *[512]float32) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		l := greyOf(p)
		base, at := float32(l), 255-l
		p[0] = clampByte(int32(base + t[(at+int32(p[0]))&511]))
		p[1] = clampByte(int32(base + t[(at+int32(p[1]))&511]))
		p[2] = clampByte(int32(base + t[(at+int32(p[2]))&511]))
	}
}

func desaturateInPlace(_ *Effect, w *Workspace, m *pixel.Image) {
	changePixels(w, m, (*Workspace).vectorPixels, setGreys, desaturatePixels)
}

func desaturatePixels(run []byte) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		l := byte(greyOf(p))
		p[0], p[1], p[2] = l, l, l
	}
}

func stretchInPlace(_ *Effect, w *Workspace, m *pixel.Image) {
	low, high := rangesOf(w, m)
	for c := range low {
		stretchTable(&w.tables[c], low[c], high[c])
	}
	lookUpEach(w, m)
}

func equalizeInPlace(_ *Effect, w *Workspace, m *pixel.Image) {
	h := countHistograms(m)
	for c := range h {
		flattenTable(&w.tables[c], &h[c])
	}
	lookUpEach(w, m)
}

// mixTable is a + factor·(v−a) for every value v.
func mixTable(t *[256]byte, a int, factor float32) {
	for v := range t {
		x := float32(a) + float32(factor*float32(v-a))
		t[v] = byte(min(max(x, 0), 255))
	}
}

// fillShares is factor·d at place 255+d, for every difference d of two bytes. A share that leads out of a byte's range
// from anywhere is cut to one that int32 can hold. It lies in w until the next effect.
func fillShares(w *Workspace, factor float32) *[512]float32 {
	w.floats = pixel.Grow(w.floats, 512)
	t := (*[512]float32)(w.floats)
	for i := range t {
		t[i] = min(max(float32(factor*float32(i-255)), -512), 512)
	}
	return t
}

// stretchTable maps the range of values that occur to 0…255.
func stretchTable(t *[256]byte, low, high int) {
	scale, offset := 1.0, 0.0
	if high > low {
		scale = 255 / float64(high-low)
		offset = -float64(float64(low) * scale)
	}
	for i := range t {
		t[i] = byte(min(max(float64(float64(i)*scale)+offset, 0), 255))
	}
}

// flattenTable is the cumulative histogram in 255 steps.
func flattenTable(t *[256]byte, h *[256]uint32) {
	total, last := 0, 0
	for i, n := range h {
		total += int(n)
		if n > 0 {
			last = i
		}
	}
	step := (total - int(h[last])) / 255
	n := step / 2
	for i := range t {
		t[i] = byte(i)
		if step > 0 {
			t[i] = byte(min(n/step, 255))
		}
		n += int(h[i])
	}
}

// rangesOf returns the least and the greatest value of each channel.
func rangesOf(w *Workspace, m *pixel.Image) (low, high [3]int) {
	var seen [3][256]bool
	runs, size := runsOf(m)
	for k := range runs {
		run := m.Pix[k*m.Stride:][:size]
		if kernel.Vector(w.Level) && size >= 96 {
			least, most := [96]byte(run), [96]byte(run)
			n := size / 96 * 96
			findRanges(&least, &most, &run[0], n)
			markSeen(&seen, least[:])
			markSeen(&seen, most[:])
			run = run[n:]
		}
		markSeen(&seen, run)
	}
	for c := range seen {
		low[c], high[c] = slices.Index(seen[c][:], true), 255
		for !seen[c][high[c]] {
			high[c]--
		}
	}
	return low, high
}

// markSeen marks the values of pixels.
func markSeen(seen *[3][256]bool, run []byte) {
	for i := 0; i < len(run); i += 3 {
		p := run[i : i+3 : i+3]
		seen[0][p[0]], seen[1][p[1]], seen[2][p[2]] = true, true, true
	}
}

// countHistograms counts the values of each channel, those of every other pixel apart: the same value twice in a row
// would wait for itself.
func countHistograms(m *pixel.Image) (h [3][256]uint32) {
	var other [3][256]uint32
	for y := range m.H {
		row := m.Row(y)
		for ; len(row) >= 6; row = row[6:] {
			h[0][row[0]]++
			h[1][row[1]]++
			h[2][row[2]]++
			other[0][row[3]]++
			other[1][row[4]]++
			other[2][row[5]]++
		}
		for c, v := range row {
			h[c][v]++
		}
	}
	for c := range h {
		for v, n := range other[c] {
			h[c][v] += n
		}
	}
	return h
}

// lookUp changes every value.
func lookUp(w *Workspace, m *pixel.Image, t *[256]byte) {
	if w.Level == kernel.AVX512 {
		eachRun(m, func(p *byte, size int) { lookUpBytesAVX512(p, t, size) })
		return
	}
	runs, size := runsOf(m)
	vector := w.vectorGroups(size)
	if vector > 0 {
		fillParts(&w.parts[0], t)
	}
	for k := range runs {
		run := m.Pix[k*m.Stride:][:size]
		if vector > 0 {
			lookUpBytes(&run[0], &w.parts[0], vectorGroup*vector)
			run = run[vectorGroup*vector:]
		}
		for i, v := range run {
			run[i] = t[v]
		}
	}
}

// lookUpEach changes every value by its channel's table, which the workspace has.
func lookUpEach(w *Workspace, m *pixel.Image) {
	t := &w.tables
	if w.Level == kernel.AVX512 {
		eachRun(m, func(p *byte, size int) { lookUpPixelsAVX512(p, t, size) })
		return
	}
	runs, size := runsOf(m)
	vector := w.vectorGroups(size / 3)
	for c := 0; c < 3 && vector > 0; c++ {
		fillParts(&w.parts[c], &t[c])
	}
	for k := range runs {
		run := m.Pix[k*m.Stride:][:size]
		if vector > 0 {
			lookUpPixels(&run[0], &w.parts, vectorGroup*vector)
			run = run[3*vectorGroup*vector:]
		}
		for i := 0; i < len(run); i += 3 {
			p := run[i : i+3 : i+3]
			p[0], p[1], p[2] = t[0][p[0]], t[1][p[1]], t[2][p[2]]
		}
	}
}

// meanGrey is the mean of all pixels' grey, rounded half up.
func meanGrey(w *Workspace, m *pixel.Image) int {
	sum := uint64(0)
	for y := range m.H {
		row := m.Row(y)
		if w.Level == kernel.AVX512 {
			sum += sumGreysAVX512(&row[0], m.W)
			continue
		}
		if n := w.vectorPixels(len(row)); n > 0 {
			sum += sumGreys(&row[0], n)
			row = row[3*n:]
		}
		part := uint64(0)
		for i := 0; i < len(row); i += 3 {
			part += uint64(greyOf(row[i : i+3 : i+3]))
		}
		sum += part
	}
	return int(math.Floor(float64(sum)/float64(m.W*m.H) + 0.5))
}

// greyOf is ITU-R 601 luma in 16-bit fixed point, rounded.
func greyOf(p []byte) int32 {
	return (19595*int32(p[0]) + 38470*int32(p[1]) + 7471*int32(p[2]) + 1<<15) >> 16
}

func clampByte(x int32) byte {
	if uint32(x) > 255 {
		x = ^(x >> 31)
	}
	return byte(x)
}
