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
	return Effect{InPlace: blurByBoxes, Numbers: [16]float64{radius}}
}

// columnsAtOnce is how many columns are gathered together: the pixels of a cache line.
const columnsAtOnce = 21

func blurByBoxes(e *Effect, w *Workspace, m *pixel.Image) {
	b, n, h := boxOf(float32(e.Numbers[0])), 3*max(m.W, m.H), 3*m.H
	w.bytes = pixel.Grow(w.bytes, 2*n+columnsAtOnce*h)
	first, second, columns := w.bytes[:n], w.bytes[n:][:n], w.bytes[2*n:]
	for y := 0; y < m.H && !w.IsStopped(); y++ {
		b.blurLine(m.Row(y)[:3*m.W], first, second)
	}
	for x := 0; x < m.W && !w.IsStopped(); x += columnsAtOnce {
		k := min(columnsAtOnce, m.W-x)
		for y := range m.H {
			for i, row := 0, m.Row(y)[3*x:][:3*k]; i < k; i++ {
				*(*[3]byte)(columns[i*h+3*y:]) = [3]byte(row[3*i:])
			}
		}
		for i := range k {
			b.blurLine(columns[i*h:][:h], first, second)
		}
		for y := range m.H {
			for i, row := 0, m.Row(y)[3*x:][:3*k]; i < k; i++ {
				*(*[3]byte)(row[3*i:]) = [3]byte(columns[i*h+3*y:])
			}
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
	n, reach := len(in)/3, b.radius+1
	sums := [3]uint32{}
	for x := -b.radius; x <= b.radius; x++ {
		for c := range sums {
			sums[c] += nearest(in, x, c)
		}
	}
	x := b.blurEnd(out, in, 0, min(reach, n), &sums)
	if inside := n - 2*reach; inside > 0 {
		x += b.blurInside(out[3*x:][:3*inside], in[:3*inside+3], in[6*reach:][:3*inside], &sums)
	}
	b.blurEnd(out, in, x, n, &sums)
}

// nearest is a value of the pixel at x, or at the end that is nearest.
func nearest(in []byte, x, c int) uint32 { return uint32(in[3*min(max(x, 0), len(in)/3-1)+c]) }

// blurEnd makes pixels x to end, where a box may reach beyond an end. sums are those of the box's whole pixels at x.
func (b box) blurEnd(out, in []byte, x, end int, sums *[3]uint32) int {
	for ; x < end; x++ {
		for c := range sums {
			before, behind := nearest(in, x-b.radius-1, c), nearest(in, x+b.radius+1, c)
			out[3*x+c] = b.value(sums[c], before+behind)
			sums[c] += behind - nearest(in, x-b.radius, c)
		}
	}
	return end
}

// blurInside makes pixels whose box is inside, and tells how many. before and behind begin with what lies beside the first one's box.
func (b box) blurInside(out, before, behind []byte, sums *[3]uint32) int {
	red, green, blue := sums[0], sums[1], sums[2]
	for i := 0; i+2 < len(out); i += 3 {
		p, q, o := (*[6]byte)(before[i:]), (*[3]byte)(behind[i:]), (*[3]byte)(out[i:])
		r, g, bl := uint32(q[0]), uint32(q[1]), uint32(q[2])
		o[0], o[1], o[2] = b.value(red, uint32(p[0])+r), b.value(green, uint32(p[1])+g), b.value(blue, uint32(p[2])+bl)
		red, green, blue = red+r-uint32(p[3]), green+g-uint32(p[4]), blue+bl-uint32(p[5])
	}
	*sums = [3]uint32{red, green, blue}
	return len(out) / 3
}

// value is that of a pixel: of a sum of whole pixels, and of two of which parts count.
func (b box) value(sum, ends uint32) byte { return byte((sum*b.whole + ends*b.part + 1<<23) >> 24) }
