package raster

import (
	"math"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// boxPasses is how many boxes a line is blurred with, one after the other, to come near a Gaussian.
const boxPasses = 3

// GaussianBlurByBoxes is Pillow's ImageFilter.GaussianBlur, of the same radius along both sides: three boxes with
// fractional ends, as in Gwosdek, Grewenig, Bruhn and Weickert, Theoretical Foundations of Gaussian Convolution by
// Extended Box Filtering (2011).
func GaussianBlurByBoxes(radius float64) Effect {
	if float32(radius) == 0 {
		return Effect{}
	}
	return Effect{InPlace: blurByBoxes, Numbers: [16]float64{radius}, Steps: 4 * boxPasses * 2}
}

func blurByBoxes(e *Effect, w *Workspace, m *pixel.Image) {
	b, n := boxOf(float32(e.Numbers[0])), 3*max(m.W, m.H)
	w.bytes = pixel.Grow(w.bytes, 3*n)
	first, second, column := w.bytes[:n], w.bytes[n:][:n], w.bytes[2*n:][:3*m.H]
	for y := 0; y < m.H && !w.IsStopped(); y++ {
		b.blurLine(m.Row(y)[:3*m.W], first, second)
	}
	for x := 0; x < m.W && !w.IsStopped(); x++ {
		for y := range m.H {
			copy(column[3*y:], m.Row(y)[3*x:][:3])
		}
		b.blurLine(column, first, second)
		for y := range m.H {
			copy(m.Row(y)[3*x:][:3], column[3*y:])
		}
	}
}

// A box takes whole pixels on both sides of one, and a part of the next ones; shares are of 1<<24.
type box struct {
	radius      int
	whole, part uint32
}

// boxOf is the box of which boxPasses have the variance of a Gaussian. Pillow computes it in float32, but for the root.
func boxOf(radius float32) box {
	variance := float32(radius*radius) / boxPasses
	length := float32(math.Sqrt(float64(12*float64(variance)) + 1))
	whole := float32(math.Floor((float64(length) - 1) / 2))
	part := float32(2*whole+1) * float32(float32(whole*float32(whole+1))-float32(3*variance))
	part /= float32(6 * float32(variance-float32(float32(whole+1)*float32(whole+1))))
	r := whole + part
	b := box{radius: int(r), whole: uint32(float32(1<<24) / float32(float32(r*2)+1))}
	b.part = (1<<24 - uint32(2*b.radius+1)*b.whole) / 2 //nolint:gosec // radii are small
	return b
}

// blurLine blurs a line of pixels. What is beyond an end is as the end.
func (b box) blurLine(line, first, second []byte) {
	first, second = first[:len(line)], second[:len(line)]
	b.blurOnce(first, line)
	b.blurOnce(second, first)
	b.blurOnce(line, second)
}

func (b box) blurOnce(out, in []byte) {
	last := len(in)/3 - 1
	for c := range 3 {
		at := func(x int) uint32 { return uint32(in[3*min(max(x, 0), last)+c]) }
		sum := uint32(0)
		for x := -b.radius; x <= b.radius; x++ {
			sum += at(x)
		}
		for x := range last + 1 {
			far := at(x-b.radius-1) + at(x+b.radius+1)
			out[3*x+c] = byte((sum*b.whole + far*b.part + 1<<23) >> 24)
			sum += at(x+b.radius+1) - at(x-b.radius)
		}
	}
}
