package resize

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// plainFilter is the filter as its authors write it.
func plainFilter(m Method) (support float64, f func(x float64) float64) {
	sinc := func(x float64) float64 {
		if x == 0 {
			return 1
		}
		return math.Sin(x*math.Pi) / (x * math.Pi)
	}
	switch m.Filter {
	case "box":
		return 0.5, func(x float64) float64 {
			if x > -0.5 && x <= 0.5 {
				return 1
			}
			return 0
		}
	case "hamming":
		return 1, func(x float64) float64 {
			if math.Abs(x) >= 1 {
				return 0
			}
			return sinc(x) * (float64(float32(0.54)) + float64(float64(float32(0.46))*math.Cos(x*math.Pi)))
		}
	case "lanczos":
		return 3, func(x float64) float64 {
			if x < -3 || x >= 3 {
				return 0
			}
			return sinc(x) * sinc(x/3)
		}
	case "bicubic":
		a := -0.5
		if m.Aliased {
			a = -0.75
		}
		return 2, func(x float64) float64 {
			switch x = math.Abs(x); {
			case x < 1:
				return float64((a+2)*x*x*x) - float64((a+3)*x*x) + 1
			case x < 2:
				return float64(a*x*x*x) - float64(5*a*x*x) + float64(8*a*x) - 4*a
			}
			return 0
		}
	}
	return 1, func(x float64) float64 { return math.Max(1-math.Abs(x), 0) }
}

// plainTap is a weight of a source pixel.
type plainTap struct {
	at     int
	weight float64
}

// plainTaps are the taps of output i, and their largest weight as torch sees it.
func plainTaps(m Method, in, out, i int) (taps []plainTap, largest float64) {
	support, f := plainFilter(m)
	scale := float64(in) / float64(out)
	stretch := math.Max(scale, 1)
	if m.Aliased {
		stretch = 1
	}
	center, sum := float64((float64(i)+0.5)*scale), 0.0
	first, end := int(math.Floor(center-float64(support*stretch)+0.5)), int(center+float64(support*stretch)+0.5)
	if m.Aliased {
		end = first + 2*int(support)
	}
	weights := map[int]float64{}
	for k := first; k < end; k++ {
		at, w := min(max(k, 0), in-1), f((float64(k)-center+0.5)/stretch)
		if at != k && !m.Aliased {
			continue
		}
		weights[at] += w
		sum += w
		if m.Aliased {
			largest = max(largest, weights[at])
		}
	}
	for at, w := range weights {
		taps = append(taps, plainTap{at, w / sum})
		if !m.Aliased {
			largest = max(largest, w/sum)
		}
	}
	return taps, largest
}

// narrowBy is the horizontal pass.
func narrowBy(p plain.Picture, m Method, w int) plain.Picture {
	if w == p.W {
		return p
	}
	q, bits := plain.NewPicture(w, p.H), 22
	if m.Tensor && !m.IsNearest() {
		largest := 0.0
		for x := range w {
			_, l := plainTaps(m, p.W, w, x)
			largest = max(largest, l)
		}
		for bits = 0; bits < 22 && int(0.5+largest*math.Exp2(float64(bits+1))) < 1<<15; {
			bits++
		}
	}
	for x := range w {
		taps := []plainTap{{plainNearest(m, p.W, w, x), 1}}
		if !m.IsNearest() {
			taps, _ = plainTaps(m, p.W, w, x)
		}
		for y := range p.H {
			for c := range 3 {
				total := 1 << (bits - 1)
				for _, t := range taps {
					total += int(p.At(t.at, y)[c]) * int(math.Round(t.weight*math.Exp2(float64(bits))))
				}
				q.At(x, y)[c] = byte(max(0, min(total>>bits, 255)))
			}
		}
	}
	return q
}

func plainNearest(m Method, in, out, i int) int {
	if !m.Tensor {
		scale := float64(in) / float64(out)
		place := scale / 2
		for range i { // Pillow adds up, and a tie may fall to the other side
			place += scale
		}
		return min(int(place), in-1)
	}
	shift := float32(0)
	if m.Filter == "nearest-exact" {
		shift = 0.5
	}
	return min(int(math.Floor(float64((float32(i)+shift)*(float32(in)/float32(out))))), in-1)
}

func resizeBy(p plain.Picture, m Method, w, h int, ref Reference) plain.Picture {
	across := func(p plain.Picture) plain.Picture { return narrowBy(p, m, w) }
	down := func(p plain.Picture) plain.Picture { return narrowBy(p.Transpose(), m, h).Transpose() }
	if !m.Tensor && ref == Pillow13 && h < p.H && p.H-h > 2*(p.W-w) {
		return across(down(p))
	}
	return down(across(p))
}

// methods are all that there are.
func methods() (all []Method) {
	for _, name := range FilterNames {
		all = append(all, Method{Filter: name})
		if name != "box" && name != "hamming" {
			all = append(all, Method{Filter: name, Tensor: true})
		}
	}
	return append(all, Method{Bilinear, true, true}, Method{Bicubic, true, true})
}

func TestEveryMethodGivesTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	for _, m := range methods() {
		resamplers := map[string]*Resampler{}
		for k := range 120 {
			w, ref := shape(r), []Reference{Pillow13, Pillow12}[k%2]
			w.Method = m
			p := plain.RandomPicture(r, w.From.X, w.From.Y)
			want := resizeBy(p.Flip(w.Mirror.X, w.Mirror.Y), m, w.To.X, w.To.Y, ref).Crop(w.Rect).Flip(w.Flip.X, w.Flip.Y)
			for _, level := range kernel.Levels() {
				name := fmt.Sprint(level, ref)
				if resamplers[name] == nil {
					resamplers[name] = NewResampler(level, ref)
				}
				if got := run(t, resamplers[name], w, &plain.Feed{Picture: p, Random: r, Chunk: 1 + r.IntN(60)}); !got.Equal(want) {
					t.Fatalf("%s: %+v differs", name, w)
				}
			}
		}
	}
}

// Streaming relies on sums that begin in ascending order, whatever the filter.
func TestTapsOfEveryMethodAscend(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	var a axis
	for _, m := range methods() {
		for range 300 {
			in, out := 1+r.IntN(700), 1+r.IntN(700)
			a.planOutputs(m, in, out, 0, out, r.IntN(2) == 0, false)
			for i := 1; a.resized && i < out; i++ {
				if a.taps.First[i] < a.taps.First[i-1] || a.lo < 0 || a.hi > in {
					t.Fatalf("%+v: %d → %d: output %d begins at %d, needs %d … %d", m, in, out, i, a.taps.First[i], a.lo, a.hi)
				}
			}
		}
	}
}

func TestSineIsPrecise(t *testing.T) {
	for i := range 10001 {
		x := math.Pi * float64(i) / 10000
		if got, want := sineOf(x), math.Sin(x); math.Abs(got-want) > 3e-16 {
			t.Fatalf("sine(%v) = %v, want %v", x, got, want)
		}
	}
}

// BenchmarkMethods makes 224×224 pixels of typical crops that come 16 rows at a time.
func BenchmarkMethods(b *testing.B) {
	const stride, batch = 1536, 16
	src := plain.RandomPicture(rand.New(rand.NewPCG(1, 1)), stride/3, 375).Pix
	src = append(src, make([]byte, pixel.Pad)...)
	dst := make([]byte, 3*224*224)
	for _, level := range kernel.Levels() {
		for _, m := range methods() {
			b.Run(fmt.Sprintf("level=%s/filter=%s/tensor=%v/aliased=%v", level, m.Filter, m.Tensor, m.Aliased), func(b *testing.B) {
				rs, sizes := NewResampler(level, Pillow13), crops("all")
				for i := range b.N {
					from := sizes[i%len(sizes)]
					rs.Begin(Window{From: from, To: image.Pt(224, 224), Rect: image.Rect(0, 0, 224, 224), Method: m}, dst, 3*224)
					for y := 0; y < from.Y; y += batch {
						rs.Rows(src[y*stride:], stride, min(batch, from.Y-y))
					}
				}
			})
		}
	}
}
