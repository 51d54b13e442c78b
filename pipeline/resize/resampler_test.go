package resize

import (
	"bytes"
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// shape returns a random window: all kinds of scales, flips, cuts and the sides of 1 pixel.
func shape(r *rand.Rand) Window {
	side := func() int {
		switch r.IntN(8) {
		case 0:
			return 1
		case 1:
			return 1 + r.IntN(300)
		}
		return 1 + r.IntN(60)
	}
	w := Window{From: image.Pt(side(), side()), To: image.Pt(side(), side())}
	if r.IntN(5) == 0 {
		w.To.X = w.From.X
	}
	if r.IntN(5) == 0 {
		w.To.Y = w.From.Y
	}
	w.Rect = image.Rectangle{Max: w.To}
	if r.IntN(2) == 0 {
		x, y := r.IntN(w.To.X), r.IntN(w.To.Y)
		w.Rect = image.Rect(x, y, x+1+r.IntN(w.To.X-x), y+1+r.IntN(w.To.Y-y))
	}
	flips := r.IntN(16)
	w.Mirror = Flips{flips&1 != 0, flips&2 != 0}
	w.Flip = Flips{flips&4 != 0, flips&8 != 0}
	return w
}

// run makes a window with a Resampler and checks that nothing is written around it.
func run(t *testing.T, rs *Resampler, w Window, f *plain.Feed) plain.Picture {
	t.Helper()
	out, gap := w.Rect.Size(), f.Random.IntN(20)
	stride := 3*out.X + gap
	whole := bytes.Repeat([]byte{0xa5}, out.Y*stride+64)
	rs.Begin(w, whole[32:32+out.Y*stride-gap:32+out.Y*stride-gap], stride)
	if err := f.Decode(rs.Need(), rs); err != nil || rs.Missing() != 0 {
		t.Fatalf("%+v: %v, %d rows missing", w, err, rs.Missing())
	}
	q := plain.NewPicture(out.X, out.Y)
	for y := range out.Y {
		row := whole[32+y*stride:]
		copy(q.Pix[3*y*out.X:], row[:3*out.X])
		for i := range 3 * out.X {
			row[i] = 0xa5
		}
	}
	if bytes.Count(whole, []byte{0xa5}) != len(whole) {
		t.Fatalf("%+v: wrote outside of the rows", w)
	}
	return q
}

func TestResamplerGivesPillowsBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	resamplers := map[string]*Resampler{}
	order := [2]int{}
	for range 700 {
		w := shape(r)
		p := plain.RandomPicture(r, w.From.X, w.From.Y)
		for _, ref := range []Reference{Pillow13, Pillow12} {
			want := p.Flip(w.Mirror.X, w.Mirror.Y).Resize(w.To.X, w.To.Y, ref == Pillow13).Crop(w.Rect).Flip(w.Flip.X, w.Flip.Y)
			for _, level := range kernel.Levels() {
				name := fmt.Sprint(level, ref)
				if resamplers[name] == nil {
					resamplers[name] = NewResampler(level, ref)
				}
				rs := resamplers[name]
				if got := run(t, rs, w, &plain.Feed{Picture: p, Random: r, Chunk: 1 + r.IntN(120)}); !got.Equal(want) {
					t.Fatalf("%s: %+v differs", name, w)
				}
				if rs.passes != atMostHorizontal {
					order[rs.passes-1]++
				}
			}
		}
	}
	if slices.Min(order[:]) < 150 {
		t.Errorf("the orders of the passes came %v times", order)
	}
}

// What is not needed is not asked for: one result pixel of a long side needs a few source pixels.
func TestResamplerNeedsLittle(t *testing.T) {
	rs := NewResampler(kernel.Scalar, Pillow13)
	dst := make([]byte, 3)
	rs.Begin(Window{From: image.Pt(1000, 600), To: image.Pt(500, 300), Rect: image.Rect(100, 7, 101, 8)}, dst, 3)
	// Scale 2: the triangle around 201 and 15 reaches 2 to each side.
	if got, want := rs.Need(), image.Rect(199, 13, 203, 17); got != want {
		t.Errorf("needs %v, want %v", got, want)
	}
	rs.Begin(Window{From: image.Pt(1000, 600), To: image.Pt(500, 300), Rect: image.Rect(100, 7, 101, 8), Mirror: Flips{X: true}}, dst, 3)
	if got, want := rs.Need(), image.Rect(797, 13, 801, 17); got != want {
		t.Errorf("mirrored: needs %v, want %v", got, want)
	}
}

// Streaming relies on sums that begin in ascending order.
func TestTapsAscend(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var a axis
	for range 3000 {
		in, out := 1+r.IntN(700), 1+r.IntN(700)
		a.planOutputs(Method{}, in, out, 0, out, r.IntN(2) == 0, false)
		if a.resized && (!slices.IsSorted(a.taps.First) || a.lo < 0 || a.hi > in) {
			t.Fatalf("%d → %d: begins %v, needs %d … %d", in, out, a.taps.First, a.lo, a.hi)
		}
	}
}

// Memory follows the filter's reach, not the picture.
func TestResamplerKeepsFewRows(t *testing.T) {
	rs := NewResampler(kernel.Scalar, Pillow13)
	dst := make([]byte, 3*224*224)
	for _, from := range []image.Point{{4000, 3000}, {300, 20000}} {
		rs.Begin(Window{From: from, To: image.Pt(224, 224), Rect: image.Rect(0, 0, 224, 224)}, dst, 3*224)
		reach := 2*from.Y/224 + 3
		if got, limit := len(rs.wait.pix)+len(rs.made.pix), (reach+2*spareRows)*3*max(from.X*int(rs.passes-1), 224); got > limit {
			t.Errorf("%v: %d bytes held, expected at most %d", from, got, limit)
		}
	}
}

// What only a huge picture needs is given back, and the result is let go of.
func TestResamplerShrinks(t *testing.T) {
	const width, most = 1900, 32 << 20
	rs, dst := NewResampler(kernel.Scalar, Pillow13), make([]byte, 3*width)
	for _, h := range []int{6200, 600} {
		rs.Begin(Window{From: image.Pt(width, h), To: image.Pt(width, 1), Rect: image.Rect(0, 0, width, 1)}, dst, 3*width)
		rs.Rows(make([]byte, 3*width*h+pixel.Pad), 3*width, h)
		rs.Shrink(most)
		if n := cap(rs.wait.pix); n > most || h == 600 && n < 3*width*h {
			t.Errorf("%d bytes are kept of a picture of %d rows", n, h)
		}
		if rs.dst != nil {
			t.Error("the result is kept")
		}
	}
}
