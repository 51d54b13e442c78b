package raster

import (
	"math"
	"math/bits"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// vectorConvolution is gaussianConvolution by kernels: many values at once, and products added with one rounding each,
// which is as good. It keeps as many rows of the source, as float32 and with their reflections, as the kernel is high,
// for the values that are summed as torch does.
type vectorConvolution struct {
	gaussianConvolution
	values       []float32 // a ring of rows of the source, then one of rows of sums
	half         int       // of the kernel's taps, to either side
	padded, wide int       // values from a row of the source to the next one, and from a row of sums
	sums         []float32
	pixels, near []byte
	pairOffsets  [maxVectorTaps]int // bytes to the rows that pairSums adds
	rowOffsets   [maxVectorTaps]int // bytes to the rows that exactSums adds
	rowsKnown    bool               // rowOffsets are those of the row at hand
}

const (
	// maxVectorTaps is the widest and highest kernel that vectorConvolution takes.
	maxVectorTaps = 255
	// maxVectorValues is how many values vectorConvolution keeps at most: 32 MiB.
	maxVectorValues = 8 << 20
	// vectorGroup is what kernels write at once: rows have room for whole groups.
	vectorGroup = 32
	valueBytes  = 4
)

// canVectorize reports whether vectorConvolution takes a kernel of w×h taps for a picture of this width.
func canVectorize(w *Workspace, taps, rows, width int) bool {
	return hasFused(w.Level) && max(taps, rows) <= maxVectorTaps && 2*rows*(3*(width+taps)+2*vectorGroup) <= maxVectorValues
}

// prepare divides the workspace.
func (b *vectorConvolution) prepare(w *Workspace, sigma float32) {
	n := 3 * b.src.W
	b.half = b.w / 2
	b.wide = (n + vectorGroup - 1) &^ (vectorGroup - 1)
	b.padded = b.wide + 6*b.half + vectorGroup
	free := b.makeKernels(w, sigma, b.h*(b.padded+b.wide)+b.wide)
	b.values, b.sums = free[:b.h*(b.padded+b.wide)], free[b.h*(b.padded+b.wide):]
	w.bytes = pixel.Grow(w.bytes, 2*b.wide+b.wide/8)
	b.pixels, b.near = w.bytes[:2*b.wide], w.bytes[2*b.wide:]
}

// blurVector is blurAcross by kernels.
func blurVector(e *Effect, w *Workspace, dst, src *pixel.Image) {
	b := &w.blur
	*b = vectorConvolution{gaussianConvolution: gaussianConvolution{src: src, w: int(e.Numbers[0]), h: int(e.Numbers[1])}}
	b.prepare(w, float32(e.Numbers[2]))
	done := 0 // rows whose sums are in the ring, or were
	for y := 0; y < src.H && !w.IsStopped(); y++ {
		for ; done < min(y+b.h/2+1, src.H); done++ {
			b.sumRow(done)
		}
		b.sumColumns(y)
		b.roundRow(dst.Row(y), y)
	}
	*b = vectorConvolution{} // its memory is the workspace's
}

// valuesOf is where row y of the source begins in values, its reflections included; sumsOf where the sums of row y do.
func (b *vectorConvolution) valuesOf(y int) int { return y % b.h * b.padded }
func (b *vectorConvolution) sumsOf(y int) int   { return b.h*b.padded + y%b.h*b.wide }

// sumRow sums along row y of the source.
func (b *vectorConvolution) sumRow(y int) {
	n, half := b.src.W, b.half
	copy(b.pixels, b.src.Row(y))
	row := b.values[b.valuesOf(y):][:b.padded]
	widenBytes(&row[3*half], &b.pixels[0], 3*n)
	for x := 1; x <= half; x++ {
		copy(row[3*(half-x):][:3], row[3*(half+x):])
		copy(row[3*(half+n-1+x):][:3], row[3*(half+n-1-x):])
	}
	middle := b.valuesOf(y) + 3*half
	b.pairOffsets[0] = valueBytes * middle
	for t := 1; t < len(b.across); t++ {
		b.pairOffsets[2*t-1], b.pairOffsets[2*t] = valueBytes*(middle-3*t), valueBytes*(middle+3*t)
	}
	sums := b.values[b.sumsOf(y):][:b.wide]
	pairSums(&sums[0], &b.values[0], &b.pairOffsets[0], &b.across[0], len(b.across), 3*n)
}

// sumColumns sums around row y.
func (b *vectorConvolution) sumColumns(y int) {
	b.pairOffsets[0] = valueBytes * b.sumsOf(y)
	for t := 1; t < len(b.down); t++ {
		b.pairOffsets[2*t-1] = valueBytes * b.sumsOf(reflectIndex(y-t, b.src.H))
		b.pairOffsets[2*t] = valueBytes * b.sumsOf(reflectIndex(y+t, b.src.H))
	}
	pairSums(&b.sums[0], &b.values[0], &b.pairOffsets[0], &b.down[0], len(b.down), 3*b.src.W)
}

// roundRow rounds row y. Values near a half are gathered, and summed eight at a time.
func (b *vectorConvolution) roundRow(dst []byte, y int) {
	roundSums(&b.pixels[0], &b.near[0], &b.sums[0], b.margin, 1-b.margin, len(dst))
	b.rowsKnown = false
	var places [8]int
	k := 0
	for i, near := range b.near[:(len(dst)+7)/8] {
		for ; near != 0; near &= near - 1 {
			place := 8*i + bits.TrailingZeros8(near)
			if place >= len(dst) {
				break
			}
			if places[k] = place; k == len(places)-1 {
				b.setExact(places[:], y)
				k = -1
			}
			k++
		}
	}
	b.setExact(places[:k], y)
	copy(dst, b.pixels)
}

// setExact sets values of row y as torch computes them: products from left to right and from top to bottom, each added
// with one rounding.
func (b *vectorConvolution) setExact(places []int, y int) {
	if len(places) == 0 {
		return
	}
	if !b.rowsKnown {
		for i := range b.h {
			b.rowOffsets[i] = valueBytes * b.valuesOf(reflectIndex(y+i-b.h/2, b.src.H))
		}
		b.rowsKnown = true
	}
	var columns [8]int
	for i := range columns {
		columns[i] = valueBytes * places[min(i, len(places)-1)]
	}
	var sums [8]float32
	exactSums(&sums, &b.values[0], &b.rowOffsets[0], &columns, &b.kernel[0], b.w, b.h)
	for i, place := range places {
		b.pixels[place] = byte(math.RoundToEven(float64(sums[i])))
	}
}
