package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// A displacementField is how far each pixel is moved along one axis: uniform noise from −1 to 1, smoothed. torch sums
// products with the n×n kernel one after the other, with one rounding each, which takes n² steps a pixel; row sums rows
// and columns apart, which is as good to within reach, and exact does as torch does.
type displacementField struct {
	rng          RNG
	first        uint32 // block of the noise: value i, in rows, is word i mod 4 of block i div 4 behind it
	w, h         int
	n            int // taps
	alpha        float32
	side         int // what torchvision divides by
	across, down []float32
	kernel       []float32
	noise        []float32 // rows with their reflections: a ring
	sums         []float32 // of rows: a ring
	sum          []float32
	done         int     // rows that are in the rings, or were
	reach        float32 // in pixels
}

// floatsNeeded is how many floats it works in.
func (f *displacementField) floatsNeeded() int {
	return f.n*f.n + 2*f.n + f.n*(f.w+f.n-1) + f.n*f.w + f.w
}

// prepareKernels makes the kernels and takes its memory from the front of free; it returns the rest.
func (f *displacementField) prepareKernels(free []float32, sigmaX, sigmaY float64) []float32 {
	take := func(n int) []float32 {
		s := free[:n:n]
		free = free[n:]
		return s
	}
	across, down := take(f.n), take(f.n)
	f.kernel, f.noise, f.sums, f.sum = take(f.n*f.n), take(f.n*(f.w+f.n-1)), take(f.n*f.w), take(f.w)
	gaussianKernel(across, float32(sigmaX))
	gaussianKernel(down, float32(sigmaY))
	for i, y := range down {
		for j, x := range across {
			f.kernel[i*f.n+j] = float32(y * x)
		}
	}
	var droppedAcross, droppedDown float64
	f.across, droppedAcross = upperHalf(across)
	f.down, droppedDown = upperHalf(down)
	f.setReach(droppedAcross + droppedDown)
	return free
}

// setReach bounds the error. torch rounds n² sums below 1, from 25 taps on below ½: by Hoeffding's inequality the sum
// of n² independent errors, each within half a unit, is beyond 5·n units in one of 10²⁰ cases. Sums of rows and
// columns, at most n steps, count in full. The rest are the roundings of places between −1 and 1.
func (f *displacementField) setReach(dropped float64) {
	unit := 0x1p-24
	if f.n >= 25 {
		unit = 0x1p-25
	}
	smoothed := float64(5*float64(f.n)*unit) + float64(float64(f.n+4)*0x1p-24) + dropped
	f.reach = float32(float64(smoothed*math.Abs(float64(f.alpha))/2) + float64(float64(f.side)*0x1p-22))
}

// smoothRow returns the smoothed noise of row y, approximately. Rows are asked for in order.
func (f *displacementField) smoothRow(y int) []float32 {
	for ; f.done < min(y+f.n/2+1, f.h); f.done++ {
		f.sumRow(f.done)
	}
	scaleRow(f.sum, f.sumsOf(y), f.down[0])
	for d := 1; d < len(f.down); d++ {
		addPair(f.sum, f.sumsOf(reflectIndex(y-d, f.h)), f.sumsOf(reflectIndex(y+d, f.h)), f.down[d])
	}
	return f.sum
}

// noiseOf is row y of the noise, with n/2 reflections on both sides.
func (f *displacementField) noiseOf(y int) []float32 {
	width := f.w + f.n - 1
	return f.noise[y%f.n*width:][:width]
}

func (f *displacementField) sumsOf(y int) []float32 { return f.sums[y%f.n*f.w:][:f.w] }

// sumRow draws row y and sums along it.
func (f *displacementField) sumRow(y int) {
	row, edge := f.noiseOf(y), f.n/2
	f.drawNoise(row[edge:][:f.w], y*f.w)
	for x := 1; x <= edge; x++ {
		row[edge-x] = row[edge+x]
		row[edge+f.w-1+x] = row[edge+f.w-1-x]
	}
	sum := f.sumsOf(y)
	scaleRow(sum, row[edge:], f.across[0])
	for x := 1; x < len(f.across); x++ {
		addPair(sum, row[edge-x:], row[edge+x:], f.across[x])
	}
}

// drawNoise writes the noise from value i on.
func (f *displacementField) drawNoise(dst []float32, i int) {
	x := f.rng.Block(f.first + uint32(i/4)) //nolint:gosec // below 2²⁶
	for k := range dst {
		if i%4 == 0 {
			x = f.rng.Block(f.first + uint32(i/4)) //nolint:gosec // below 2²⁶
		}
		dst[k] = float32(2*order.Unit(x[i%4])) - 1
		i++
	}
}

// exactValue is the smoothed noise of a pixel of the row that was asked for last, as torch computes it.
func (f *displacementField) exactValue(x, y int) float32 {
	sum := float32(0)
	for i := range f.n {
		row := f.noiseOf(reflectIndex(y+i-f.n/2, f.h))[x:][:f.n]
		kernel := f.kernel[i*f.n:][:f.n]
		for j, u := range row {
			sum = fuseMultiplyAdd(u, kernel[j], sum)
		}
	}
	return sum
}

// sourceCoordinate is where on its axis, in pixels, a pixel at from, between −1 and 1, comes from.
func (f *displacementField) sourceCoordinate(from, smoothed float32) float32 {
	return inPixels(from+float32(float32(smoothed*f.alpha)/float32(f.side)), float32(f.side)/2)
}
