package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// blurSteps are what a tap takes of three values, each of which order.Fused adds in the time of four steps.
const blurSteps = 3 * 4

// GaussianBlur has a kernel of w×h taps, both odd and less than twice the picture's side.
func GaussianBlur(w, h int, sigma float64) Effect {
	return Effect{Across: blurAcross, Numbers: [16]float64{float64(w), float64(h), sigma}, Steps: blurSteps * w * h}
}

// A gaussianConvolution is a Gaussian convolution. torch sums products with the w×h kernel one after the other, with
// one rounding each; blurring sums rows and columns apart, which is as good where the result is not within margin of a
// half, and sums as torch does where it is.
type gaussianConvolution struct {
	src          *pixel.Image
	w, h         int // taps
	kernel       []float32
	across, down []float32 // the taps from the middle on, without those too small to matter
	padded       []float32 // a row with its reflections
	rows         []float32 // sums of rows: a ring
	sum          []float32
	margin       float32
}

func blurAcross(e *Effect, w *Workspace, dst, src *pixel.Image) {
	if canVectorize(w, int(e.Numbers[0]), int(e.Numbers[1]), src.W) {
		blurVector(e, w, dst, src)
		return
	}
	b := gaussianConvolution{src: src, w: int(e.Numbers[0]), h: int(e.Numbers[1])}
	b.prepare(w, float32(e.Numbers[2]))
	done := 0 // rows whose sums are in the ring, or were
	for y := 0; y < src.H && !w.IsStopped(); y++ {
		for ; done < min(y+len(b.down), src.H); done++ {
			b.sumRow(done)
		}
		b.sumColumns(y)
		b.roundRow(dst.Row(y), y)
	}
}

// prepare makes the kernels and divides the workspace.
func (b *gaussianConvolution) prepare(w *Workspace, sigma float32) {
	size, reach := 3*b.src.W, 3*(b.w-1)
	padded, rows := size+reach, (b.h/2*2+1)*size
	free := b.makeKernels(w, sigma, padded+rows+size)
	b.padded, b.rows, b.sum = free[:padded], free[padded:padded+rows], free[padded+rows:]
}

// makeKernels makes the kernels in the workspace, and returns n further values of it.
func (b *gaussianConvolution) makeKernels(w *Workspace, sigma float32, n int) (free []float32) {
	w.floats = pixel.Grow(w.floats, b.w*b.h+b.w+b.h+n)
	free = w.floats
	take := func(n int) []float32 {
		s := free[:n:n]
		free = free[n:]
		return s
	}
	b.kernel, b.across, b.down = take(b.w*b.h), take(b.w), take(b.h)
	gaussianKernel(b.across, sigma)
	gaussianKernel(b.down, sigma)
	// What torch's roundings come to at most: half a unit of a sum below 256 each, or the product where that is less.
	margin := 0.0
	for i, y := range b.down {
		for j, x := range b.across {
			k := float32(y * x)
			b.kernel[i*b.w+j] = k
			margin += min(0x1p-17, 256*float64(k))
		}
	}
	var droppedAcross, droppedDown float64
	b.across, droppedAcross = upperHalf(b.across)
	b.down, droppedDown = upperHalf(b.down)
	margin += float64(256*(droppedAcross+droppedDown)) + float64(float64(len(b.across)+len(b.down)+2)*0x1p-15)
	b.margin = float32(margin)
	return free
}

// upperHalf is the taps from the middle on, but for the smallest, and what those left out on both sides come to.
func upperHalf(taps []float32) (upper []float32, dropped float64) {
	upper = taps[len(taps)/2:]
	for n := len(upper) - 1; n > 0 && upper[n] < 0x1p-26; n-- {
		dropped += 2 * float64(upper[n])
		upper = upper[:n]
	}
	return upper, dropped
}

// sumRow sums along row y of the source.
func (b *gaussianConvolution) sumRow(y int) {
	row, n, edge := b.src.Row(y), b.src.W, len(b.across)-1
	padded := b.padded[:3*(n+2*edge)]
	for i, v := range row {
		padded[3*edge+i] = float32(v)
	}
	for x := 1; x <= edge; x++ {
		copy(padded[3*(edge-x):][:3], padded[3*(edge+x):])
		copy(padded[3*(edge+n-1+x):][:3], padded[3*(edge+n-1-x):])
	}
	sum := b.sumsOf(y)
	scaleRow(sum, padded[3*edge:], b.across[0])
	for x := 1; x <= edge; x++ {
		addPair(sum, padded[3*(edge-x):], padded[3*(edge+x):], b.across[x])
	}
}

// sumsOf is where the sums of row y are.
func (b *gaussianConvolution) sumsOf(y int) []float32 {
	n := 3 * b.src.W
	return b.rows[y%(b.h/2*2+1)*n:][:n]
}

// sumColumns sums around row y.
func (b *gaussianConvolution) sumColumns(y int) {
	scaleRow(b.sum, b.sumsOf(y), b.down[0])
	for d := 1; d < len(b.down); d++ {
		addPair(b.sum, b.sumsOf(reflectIndex(y-d, b.src.H)), b.sumsOf(reflectIndex(y+d, b.src.H)), b.down[d])
	}
}

// roundRow rounds row y.
func (b *gaussianConvolution) roundRow(dst []byte, y int) {
	sum := b.sum[:len(dst)]
	low, high := b.margin, 1-b.margin
	for i, v := range sum {
		v += 0.5
		whole := int32(v)
		if rest := v - float32(whole); rest < low || rest > high {
			whole = b.exactValue(i/3, y, i%3)
		}
		dst[i] = byte(whole)
	}
}

// exactValue is one value as torch computes it: products from left to right and from top to bottom, each added with one
// rounding.
func (b *gaussianConvolution) exactValue(x, y, channel int) int32 {
	sum := float32(0)
	for i := range b.h {
		row := b.src.Row(reflectIndex(y+i-b.h/2, b.src.H))
		for j, k := range b.kernel[i*b.w:][:b.w] {
			if k > 0 {
				sum = order.Fused(float32(row[3*reflectIndex(x+j-b.w/2, b.src.W)+channel]), k, sum)
			}
		}
	}
	return int32(math.RoundToEven(float64(sum)))
}

// reflectIndex is a place in 0…n−1 for one that may be outside, by less than n; the edge is not repeated.
func reflectIndex(i, n int) int {
	if i < 0 {
		return -i
	}
	if i >= n {
		return 2*n - 2 - i
	}
	return i
}

// scaleRow sets dst to a·k.
func scaleRow(dst, a []float32, k float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * k
	}
}

// addPair adds (a + b)·k to dst.
func addPair(dst, a, b []float32, k float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] += float32((a[i] + b[i]) * k)
	}
}
