package augment

import (
	"bytes"
	"errors"
	"image"
	"math"
	"math/rand/v2"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// naive is what the tests compute on: op by op, whole pictures, the shortest way to write it.
type naive struct {
	w, h int
	pix  []byte
}

func newNaive(w, h int) naive { return naive{w, h, make([]byte, 3*w*h)} }

func randomNaive(r *rand.Rand, w, h int) naive {
	p := newNaive(w, h)
	for i := range p.pix {
		p.pix[i] = byte(r.Uint32())
		if r.IntN(4) == 0 {
			p.pix[i] = 255 * byte(r.IntN(2))
		}
	}
	return p
}

func (p naive) at(x, y int) []byte { return p.pix[3*(y*p.w+x):][:3] }

func (p naive) equal(q naive) bool { return p.w == q.w && p.h == q.h && bytes.Equal(p.pix, q.pix) }

// crop fills with zeros outside of p.
func (p naive) crop(r image.Rectangle) naive {
	q := newNaive(r.Dx(), r.Dy())
	for y := range q.h {
		for x := range q.w {
			if (image.Point{r.Min.X + x, r.Min.Y + y}).In(image.Rect(0, 0, p.w, p.h)) {
				copy(q.at(x, y), p.at(r.Min.X+x, r.Min.Y+y))
			}
		}
	}
	return q
}

func (p naive) flip(f Flips) naive {
	q := newNaive(p.w, p.h)
	for y := range p.h {
		for x := range p.w {
			tx, ty := x, y
			if f.X {
				tx = p.w - 1 - x
			}
			if f.Y {
				ty = p.h - 1 - y
			}
			copy(q.at(tx, ty), p.at(x, y))
		}
	}
	return q
}

func (p naive) transpose() naive {
	q := newNaive(p.h, p.w)
	for y := range p.h {
		for x := range p.w {
			copy(q.at(y, x), p.at(x, y))
		}
	}
	return q
}

// resize is Pillow's, pass by pass.
func (p naive) resize(w, h int, ref Reference) naive {
	across := func(p naive) naive { return p.narrow(w) }
	down := func(p naive) naive { return p.transpose().narrow(h).transpose() }
	if ref == Pillow13 && h < p.h && p.h-h > 2*(p.w-w) {
		return across(down(p))
	}
	return down(across(p))
}

// narrow is the horizontal pass.
func (p naive) narrow(w int) naive {
	if w == p.w {
		return p
	}
	q := newNaive(w, p.h)
	scale := float64(p.w) / float64(w)
	stretch := math.Max(scale, 1)
	for x := range w {
		center := float64((float64(x) + 0.5) * scale)
		first, end := max(int(center-stretch+0.5), 0), min(int(center+stretch+0.5), p.w)
		weights, sum := []float64{}, 0.0
		for i := first; i < end; i++ {
			f := math.Max(1-math.Abs(float64((float64(i)-center+0.5)*(1/stretch))), 0)
			weights, sum = append(weights, f), sum+f
		}
		for y := range p.h {
			for c := range 3 {
				total := 1 << 21
				for i, f := range weights {
					total += int(p.at(first+i, y)[c]) * int(f/sum*(1<<22)+0.5)
				}
				q.at(x, y)[c] = byte(max(0, min(total>>22, 255)))
			}
		}
	}
	return q
}

// feed is a Source that hands out rows in batches of odd sizes, each in memory of its own that ends at pixel.Pad.
type feed struct {
	naive
	r      *rand.Rand
	chunk  int
	asked  image.Rectangle // the last one
	missed int             // rows to leave out
}

func (f *feed) Decode(r image.Rectangle, sink pixel.Sink) error {
	f.asked = r
	if r.Empty() || !r.In(image.Rect(0, 0, f.w, f.h)) {
		panic(r)
	}
	for y := r.Min.Y; y < r.Max.Y-f.missed; {
		n := min(1+f.r.IntN(f.chunk), r.Max.Y-f.missed-y)
		stride := 3*r.Dx() + f.r.IntN(70)
		pix := bytes.Repeat([]byte{0xee}, (n-1)*stride+3*r.Dx()+pixel.Pad)
		for i := range n {
			copy(pix[i*stride:], f.pix[3*((y+i)*f.w+r.Min.X):][:3*r.Dx()])
		}
		sink.Rows(pix[:len(pix):len(pix)], stride, n)
		clear(pix) // valid until Rows returns, not longer
		y += n
	}
	return nil
}

func randomImage(r *rand.Rand, w, h int) *pixel.Image {
	var m pixel.Image
	m.Reset(w, h)
	copy(m.Pix, randomNaive(r, w, h).pix)
	return &m
}

var errBroken = errors.New("broken")

// broken is a Source that cannot be decoded.
type broken struct{}

func (broken) Decode(image.Rectangle, pixel.Sink) error { return errBroken }
