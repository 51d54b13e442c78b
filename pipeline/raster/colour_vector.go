package raster

import (
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// runsOf divides a picture in runs of bytes that hold nothing but pixels, one at each multiple of the stride: all of
// it, or its rows.
func runsOf(m *pixel.Image) (runs, size int) {
	if m.Stride == 3*m.W {
		return 1, m.H * m.Stride
	}
	return m.H, 3 * m.W
}

// eachRun hands the runs of a picture to a kernel that takes them whole.
func eachRun(m *pixel.Image, change func(p *byte, size int)) {
	runs, size := runsOf(m)
	for k := range runs {
		change(&m.Pix[k*m.Stride], size)
	}
}

// isMixable reports whether kernels that mix by a factor, and cut what comes of it as integers, can hold the products.
func isMixable(factor float32) bool { return max(factor, -factor) <= 1<<20 }

// changePixels changes the pixels of a picture: of each run, those at its beginning that kernels take by one, the others
// by rest. taken is vectorPixels or fusedPixels.
func changePixels(w *Workspace, m *pixel.Image, taken func(*Workspace, int) int, vector func(p *byte, n int), rest func(run []byte)) {
	runs, size := runsOf(m)
	n := taken(w, size)
	for k := range runs {
		run := m.Pix[k*m.Stride:][:size]
		if n > 0 {
			vector(&run[0], n)
			run = run[3*n:]
		}
		rest(run)
	}
}

// vectorPixels is how many pixels of a run of so many bytes the kernels take that work on 8 at once and read the 4 bytes
// behind them.
func (w *Workspace) vectorPixels(size int) int {
	if !kernel.Vector(w.Level) || size < 28 {
		return 0
	}
	return (size - 4) / 24 * 8
}

// fusedPixels is vectorPixels of kernels that add products with one rounding.
func (w *Workspace) fusedPixels(size int) int {
	if !hasFused(w.Level) {
		return 0
	}
	return w.vectorPixels(size)
}

// leastLooked is how many values have to be looked up for it to be worth while to make parts of a table.
const leastLooked = 1024

// vectorGroups is how many times 32 of so many values kernels look up.
func (w *Workspace) vectorGroups(values int) int {
	if !kernel.Vector(w.Level) || values < leastLooked {
		return 0
	}
	return values / vectorGroup
}

// fillParts makes of a table what kernels look up: 16 bytes each, all but the first of either half xored with the 16
// before.
func fillParts(parts, t *[256]byte) {
	*parts = *t
	for i := 16; i < 128; i++ {
		parts[i] ^= t[i-16]
		parts[128+i] ^= t[128+i-16]
	}
}
