// Package plain has pictures that tests compute on: op by op, whole pictures, the shortest way to write it. It serves
// tests alone and starts no goroutine.
package plain

import (
	"bytes"
	"errors"
	"image"
	"math"
	"math/rand/v2"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// A Picture has 8-bit RGB pixels, row after row with nothing between them.
type Picture struct {
	W, H int
	Pix  []byte
}

// NewPicture returns a black picture.
func NewPicture(w, h int) Picture { return Picture{w, h, make([]byte, 3*w*h)} }

// RandomPicture returns a picture of random values, many of which are 0 or 255.
func RandomPicture(r *rand.Rand, w, h int) Picture {
	p := NewPicture(w, h)
	for i := range p.Pix {
		p.Pix[i] = byte(r.Uint32())
		if r.IntN(4) == 0 {
			p.Pix[i] = 255 * byte(r.IntN(2))
		}
	}
	return p
}

// At returns the three values of a pixel, which may be written.
func (p Picture) At(x, y int) []byte { return p.Pix[3*(y*p.W+x):][:3] }

// Equal reports whether two pictures have the same sides and pixels.
func (p Picture) Equal(q Picture) bool { return p.W == q.W && p.H == q.H && bytes.Equal(p.Pix, q.Pix) }

// Crop returns what lies in r, with zeros outside of p.
func (p Picture) Crop(r image.Rectangle) Picture {
	q := NewPicture(r.Dx(), r.Dy())
	for y := range q.H {
		for x := range q.W {
			if (image.Point{r.Min.X + x, r.Min.Y + y}).In(image.Rect(0, 0, p.W, p.H)) {
				copy(q.At(x, y), p.At(r.Min.X+x, r.Min.Y+y))
			}
		}
	}
	return q
}

// Flip returns the picture mirrored along x, along y, or along both.
func (p Picture) Flip(alongX, alongY bool) Picture {
	q := NewPicture(p.W, p.H)
	for y := range p.H {
		for x := range p.W {
			tx, ty := x, y
			if alongX {
				tx = p.W - 1 - x
			}
			if alongY {
				ty = p.H - 1 - y
			}
			copy(q.At(tx, ty), p.At(x, y))
		}
	}
	return q
}

// Transpose returns the picture with rows for columns.
func (p Picture) Transpose() Picture {
	q := NewPicture(p.H, p.W)
	for y := range p.H {
		for x := range p.W {
			copy(q.At(y, x), p.At(x, y))
		}
	}
	return q
}

// Resize is Pillow's bilinear one, pass by pass. downFirst tells whether the vertical pass may come first, as it does
// from Pillow 13 on where a picture shrinks much more in height than in width.
func (p Picture) Resize(w, h int, downFirst bool) Picture {
	across := func(p Picture) Picture { return p.narrow(w) }
	down := func(p Picture) Picture { return p.Transpose().narrow(h).Transpose() }
	if downFirst && h < p.H && p.H-h > 2*(p.W-w) {
		return across(down(p))
	}
	return down(across(p))
}

// narrow is the horizontal pass.
func (p Picture) narrow(w int) Picture {
	if w == p.W {
		return p
	}
	q := NewPicture(w, p.H)
	scale := float64(p.W) / float64(w)
	stretch := math.Max(scale, 1)
	for x := range w {
		center := float64((float64(x) + 0.5) * scale)
		first, end := max(int(center-stretch+0.5), 0), min(int(center+stretch+0.5), p.W)
		weights, sum := []float64{}, 0.0
		for i := first; i < end; i++ {
			f := math.Max(1-math.Abs(float64((float64(i)-center+0.5)*(1/stretch))), 0)
			weights, sum = append(weights, f), sum+f
		}
		for y := range p.H {
			for c := range 3 {
				total := 1 << 21
				for i, f := range weights {
					total += int(p.At(first+i, y)[c]) * int(float64(f/sum*(1<<22))+0.5)
				}
				q.At(x, y)[c] = byte(max(0, min(total>>22, 255)))
			}
		}
	}
	return q
}

// A Feed hands out the rows of a picture in batches of odd sizes, each in memory of its own that ends at pixel.Pad.
type Feed struct {
	Picture
	Random *rand.Rand
	Chunk  int
	Asked  image.Rectangle // the last region
	Missed int             // rows to leave out
}

// Decode hands the rows of r to sink.
func (f *Feed) Decode(r image.Rectangle, sink pixel.Sink) error {
	f.Asked = r
	if r.Empty() || !r.In(image.Rect(0, 0, f.W, f.H)) {
		panic(r)
	}
	for y := r.Min.Y; y < r.Max.Y-f.Missed; {
		n := min(1+f.Random.IntN(f.Chunk), r.Max.Y-f.Missed-y)
		stride := 3*r.Dx() + f.Random.IntN(70)
		pix := bytes.Repeat([]byte{0xee}, (n-1)*stride+3*r.Dx()+pixel.Pad)
		for i := range n {
			copy(pix[i*stride:], f.Pix[3*((y+i)*f.W+r.Min.X):][:3*r.Dx()])
		}
		sink.Rows(pix[:len(pix):len(pix)], stride, n)
		clear(pix) // valid until Rows returns, not longer
		y += n
	}
	return nil
}

// RandomImage is RandomPicture as the image that codecs write.
func RandomImage(r *rand.Rand, w, h int) *pixel.Image {
	var m pixel.Image
	m.Reset(w, h)
	copy(m.Pix, RandomPicture(r, w, h).Pix)
	return &m
}

// ErrBroken is what Broken returns.
var ErrBroken = errors.New("broken")

// Broken is a source of rows that cannot be decoded.
type Broken struct{}

// Decode returns ErrBroken.
func (Broken) Decode(image.Rectangle, pixel.Sink) error { return ErrBroken }
