package raster

import (
	"encoding/binary"
	"image"
	"math"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// A Sampling says how warps make pixels.
type Sampling struct {
	Interpolation string
	Fill          *[3]float64 // of what lies outside of the picture; nil is zero
	Tensor        bool        // in the dialect of tensors, which ops know
}

// Warp is Pillow's Image.transform, which makes a picture of size to. Positions of pixels are float64 there, except
// that nearest under an affine matrix adds them up from pixel to pixel: in 16.16 fixed point, or in float64 where that
// would not do.
func Warp(m Matrix, b Sampling, to image.Point) Effect {
	e := Effect{Across: warpNearest}
	copy(e.Numbers[:], m[:])
	if b.Fill != nil {
		copy(e.Numbers[len(m):], b.Fill[:])
	}
	switch {
	case m.isShift():
		e.Across = warpAdded
	case b.Interpolation == "bilinear":
		e.Across = warpBilinear
	case b.Interpolation == "bicubic":
		e.Across = warpBicubic
	case m[6] != 0 || m[7] != 0:
	case m[1] == 0 && m[3] == 0 || !m.fitsFixedPoint(to):
		e.Across = warpAdded
	default:
		e.Across = warpFixed
	}
	return e
}

// isShift reports whether the matrix moves by whole pixels, where no filter has anything to mix.
func (m *Matrix) isShift() bool {
	return *m == Matrix{1, 0, math.Trunc(m[2]), 0, 1, math.Trunc(m[5])}
}

// fitsFixedPoint reports whether the four corners are in the range of 16.16 fixed point.
func (m *Matrix) fitsFixedPoint(to image.Point) bool {
	for _, corner := range [4][2]float64{{0, 0}, {1, 1}, {0, 1}, {1, 0}} {
		x, y := corner[0]*float64(to.X), corner[1]*float64(to.Y)
		if math.Abs(float64(x*m[0])+float64(y*m[1])+m[2]) >= 1<<15 || math.Abs(float64(x*m[3])+float64(y*m[4])+m[5]) >= 1<<15 {
			return false
		}
	}
	return true
}

// paintColour is the colour outside of the picture.
func (e *Effect) paintColour() [3]byte {
	var c [3]byte
	for i := range c {
		c[i] = byte(int(e.Numbers[8+i]))
	}
	return c
}

// fillRow paints a row.
func fillRow(row []byte, c [3]byte) {
	if c == [3]byte{} {
		clear(row)
		return
	}
	for ; len(row) >= 3; row = row[3:] {
		row[0], row[1], row[2] = c[0], c[1], c[2]
	}
}

const one = 1 << 16 // of 16.16 fixed point

func toFixedPoint(x float64) int { return int(math.Floor(float64(x*one) + 0.5)) }

// warpFixed steps through the picture in 16.16 fixed point.
func warpFixed(e *Effect, w *Workspace, dst, src *pixel.Image) {
	m, c := &e.Numbers, e.paintColour()
	dx, dy := toFixedPoint(m[0]), toFixedPoint(m[3])
	rowX, rowY := toFixedPoint(m[1]), toFixedPoint(m[4])
	x := toFixedPoint(m[2] + float64(m[0]*0.5) + float64(m[1]*0.5))
	y := toFixedPoint(m[5] + float64(m[3]*0.5) + float64(m[4]*0.5))
	group := w.groupGathered(src, dx, dy)
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		first, end := insideRange(x, dx, src.W*one, dst.W)
		from, to := insideRange(y, dy, src.H*one, dst.W)
		first, end = max(first, from), min(end, to)
		if first >= end {
			first, end = 0, 0
		}
		fillRow(row[:3*first], c)
		gatherPixels(row[3*first:3*end], src, x+first*dx, y+first*dy, dx, dy, group)
		fillRow(row[3*end:], c)
		x, y = x+rowX, y+rowY
	}
}

// insideRange returns the range of those i in [0, n) for which 0 ≤ x + i·step < limit. Often it is all of them, which
// is found without a division.
func insideRange(x, step, limit, n int) (first, end int) {
	last := x + (n-1)*step
	switch {
	case min(x, last) >= 0 && max(x, last) < limit:
		end = n
	case step > 0:
		first, end = floorOf(-x-1, step)+1, floorOf(limit-x-1, step)+1
	case step < 0:
		first, end = floorOf(x-limit, -step)+1, floorOf(x, -step)+1
	}
	return min(max(first, 0), n), min(max(end, 0), n)
}

// floorOf is a/b, rounded down, for b > 0.
func floorOf(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// gatherPixels fills row with the pixels at x, y, x+dx, y+dy, …, in 16.16 fixed point, all inside src. It copies four
// bytes for each but the last: the fourth is overwritten by the next. group is what groupGathered gives.
func gatherPixels(row []byte, src *pixel.Image, x, y, dx, dy, group int) {
	if len(row) == 0 {
		return
	}
	pix, stride := src.Pix, src.Stride
	if group > 0 && len(row) >= 3*group {
		gatherAVX512(&row[0], &pix[0], stride, src.H-4, x, y, dx, dy, len(row)/3, group)
		return
	}
	if dx == one && dy == 0 {
		copy(row, pix[(y>>16)*stride+3*(x>>16):])
		return
	}
	for ; len(row) > 3; row = row[3:] {
		binary.LittleEndian.PutUint32(row, binary.LittleEndian.Uint32(pix[(y>>16)*stride+3*(x>>16):]))
		x, y = x+dx, y+dy
	}
	copy(row, pix[(y>>16)*stride+3*(x>>16):])
}

// How many pixels gatherAVX512 makes at once: with fewer than groupLeast it takes longer than Go.
const groupLeast, groupMost = 3, 16

// groupGathered is how many pixels gatherAVX512 makes at once where they are so far from each other; 0: none.
func (w *Workspace) groupGathered(src *pixel.Image, dx, dy int) int {
	if w.Level != kernel.AVX512 || src.H < 4 || dx == one && dy == 0 {
		return 0
	}
	group := min(groupMost, 1+20*one/max(dx, -dx, 1), 1+3*one/max(dy, -dy, 1))
	if group < groupLeast {
		return 0
	}
	return group
}

// warpAdded steps through the picture in float64.
func warpAdded(e *Effect, _ *Workspace, dst, src *pixel.Image) {
	m, c := &e.Numbers, e.paintColour()
	x0 := m[2] + float64(m[1]*0.5) + float64(m[0]*0.5)
	y0 := m[5] + float64(m[4]*0.5) + float64(m[3]*0.5)
	shift := m[0] == 1 && m[1] == 0 && m[3] == 0 && math.Abs(x0) < 1<<30 && 2*x0 == math.Trunc(2*x0)
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		if shift {
			shiftRow(row, src, int(2*x0), y0, c)
		} else {
			addRow(row, src, x0, y0, m[0], m[3], c)
		}
		x0, y0 = x0+m[1], y0+m[4]
	}
}

// addRow fills row with the pixels at x, y, x+dx, y+dy, …
func addRow(row []byte, src *pixel.Image, x, y, dx, dy float64, c [3]byte) {
	w, h := float64(src.W), float64(src.H)
	for ; len(row) >= 3; row = row[3:] {
		if x >= 0 && x < w && y >= 0 && y < h {
			p := src.Pix[int(y)*src.Stride+3*int(x):][:3]
			row[0], row[1], row[2] = p[0], p[1], p[2]
		} else {
			row[0], row[1], row[2] = c[0], c[1], c[2]
		}
		x, y = x+dx, y+dy
	}
}

// shiftRow fills row with the pixels at y and, of x, twice/2, twice/2 + 1, …
func shiftRow(row []byte, src *pixel.Image, twice int, y float64, c [3]byte) {
	if y < 0 || y >= float64(src.H) {
		fillRow(row, c)
		return
	}
	first, end := insideRange(twice, 2, 2*src.W, len(row)/3)
	fillRow(row[:3*first], c)
	if first < end {
		copy(row[3*first:3*end], src.Pix[int(y)*src.Stride+3*((twice+2*first)>>1):])
	}
	fillRow(row[3*max(first, end):], c)
}

// TurnQuarter is a quarter of a turn, against the clock where the first number is 90, else with it.
func TurnQuarter(angle float64) Effect {
	return Effect{Across: moveQuarter, Numbers: [16]float64{angle}}
}

func moveQuarter(e *Effect, _ *Workspace, dst, src *pixel.Image) {
	start, step := 3*(src.W-1), -3
	across := src.Stride
	if e.Numbers[0] != 90 {
		start, step, across = (src.H-1)*src.Stride, 3, -src.Stride
	}
	for j := range dst.H {
		row := dst.Pix[j*dst.Stride:][:3*dst.W]
		for o := start + j*step; len(row) >= 3; row = row[3:] {
			p := src.Pix[o:][:3]
			row[0], row[1], row[2] = p[0], p[1], p[2]
			o += across
		}
	}
}
