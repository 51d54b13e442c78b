package raster

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// mapPixels applies f to every pixel.
func mapPixels(p plain.Picture, f func(rgb [3]int) [3]int) plain.Picture {
	q := plain.NewPicture(p.W, p.H)
	for i := 0; i < len(p.Pix); i += 3 {
		for c, v := range f([3]int{int(p.Pix[i]), int(p.Pix[i+1]), int(p.Pix[i+2])}) {
			q.Pix[i+c] = byte(v)
		}
	}
	return q
}

// mapValues applies f to every value.
func mapValues(p plain.Picture, f func(v int) int) plain.Picture {
	return mapPixels(p, func(x [3]int) [3]int { return [3]int{f(x[0]), f(x[1]), f(x[2])} })
}

func plainGrey(x [3]int) int { return (x[0]*19595 + x[1]*38470 + x[2]*7471 + 0x8000) >> 16 }

// plainBlend is Pillow's Image.blend of two values.
func plainBlend(a, b int, factor float64) int {
	product := float32(float32(factor) * float32(b-a))
	return int(max(0, min(float32(a)+product, 255)))
}

func plainContrast(p plain.Picture, factor float64) plain.Picture {
	sum := 0
	mapPixels(p, func(x [3]int) [3]int { sum += plainGrey(x); return x })
	mean := int(float64(sum)/float64(p.W*p.H) + 0.5)
	return mapValues(p, func(v int) int { return plainBlend(mean, v, factor) })
}

func plainSaturate(p plain.Picture, factor float64) plain.Picture {
	return mapPixels(p, func(x [3]int) [3]int {
		l := plainGrey(x)
		return [3]int{plainBlend(l, x[0], factor), plainBlend(l, x[1], factor), plainBlend(l, x[2], factor)}
	})
}

// plainSharpen sums in float32, row by row from below.
func plainSharpen(p plain.Picture, factor float64) plain.Picture {
	one, five := float32(1)/13, float32(5)/13
	q := plain.NewPicture(p.W, p.H)
	copy(q.Pix, p.Pix)
	for y := 1; y < p.H-1; y++ {
		for x := 1; x < p.W-1; x++ {
			for c := range 3 {
				sum := float32(0.5)
				for _, row := range []int{y + 1, y, y - 1} {
					middle := one
					if row == y {
						middle = five
					}
					left, center := float32(float32(p.At(x-1, row)[c])*one), float32(float32(p.At(x, row)[c])*middle)
					sum += (left + center) + float32(float32(p.At(x+1, row)[c])*one)
				}
				q.At(x, y)[c] = byte(plainBlend(int(sum), int(p.At(x, y)[c]), factor))
			}
		}
	}
	return q
}

// mapChannels applies a table, made of a channel's histogram, to that channel.
func mapChannels(p plain.Picture, table func(counts []int) []int) plain.Picture {
	q := plain.NewPicture(p.W, p.H)
	for c := range 3 {
		counts := make([]int, 256)
		for i := c; i < len(p.Pix); i += 3 {
			counts[p.Pix[i]]++
		}
		t := table(counts)
		for i := c; i < len(p.Pix); i += 3 {
			q.Pix[i] = byte(t[p.Pix[i]])
		}
	}
	return q
}

func plainStretch(counts []int) []int {
	low, high := 255, 0
	for v, n := range counts {
		if n > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	t := make([]int, 256)
	for v := range t {
		t[v] = v
		if high > low {
			scale := 255 / float64(high-low)
			offset := float64(float64(-low) * scale)
			t[v] = max(0, min(int(float64(float64(v)*scale)+offset), 255))
		}
	}
	return t
}

func plainFlatten(counts []int) []int {
	var present []int
	sum := 0
	for _, n := range counts {
		if n > 0 {
			present, sum = append(present, n), sum+n
		}
	}
	step := (sum - present[len(present)-1]) / 255
	t, n := make([]int, 256), step/2
	for v := range t {
		t[v] = v
		if step > 0 {
			t[v] = min(n/step, 255)
		}
		n += counts[v]
	}
	return t
}

// plainHue goes through HSV, as Pillow's Convert.c does.
func plainHue(x [3]int, factor float64) [3]int {
	high, low := max(x[0], x[1], x[2]), min(x[0], x[1], x[2])
	if high == low {
		return x
	}
	span := float32(high - low)
	s := span / float32(high)
	rc, gc, bc := float32(high-x[0])/span, float32(high-x[1])/span, float32(high-x[2])/span
	h := bc - gc
	if x[0] != high {
		h = float32(2.0 + float64(rc) - float64(bc))
		if x[1] != high {
			h = float32(4.0 + float64(gc) - float64(rc))
		}
	}
	h = float32(math.Mod(float64(h)/6.0+1.0, 1.0))
	uh, us := int(float64(h)*255.0), int(float64(s)*255.0)
	uh = (uh + int(factor*255) + 256) % 256
	at := float64(uh) * 6.0 / 255.0
	f, fs, v := float32(at-math.Floor(at)), float32(float64(us)/255.0), float64(high)
	p := int(math.Round(v * (1.0 - float64(fs))))
	q := int(math.Round(v * (1.0 - float64(float32(fs*f)))))
	t := int(math.Round(v * (1.0 - float64(float64(fs)*(1.0-float64(f))))))
	return [6][3]int{{high, t, p}, {q, high, p}, {p, high, t}, {p, q, high}, {t, p, high}, {high, p, q}}[int(at)%6]
}

// colours are effects and the same without haste.
func colours() map[string]struct {
	effect Effect
	plain  func(p plain.Picture) plain.Picture
} {
	type pair = struct {
		effect Effect
		plain  func(p plain.Picture) plain.Picture
	}
	all := map[string]pair{
		"grayscale": {Grayscale(), func(p plain.Picture) plain.Picture {
			return mapPixels(p, func(x [3]int) [3]int { return [3]int{plainGrey(x), plainGrey(x), plainGrey(x)} })
		}},
		"invert":       {Invert(), func(p plain.Picture) plain.Picture { return mapValues(p, func(v int) int { return 255 - v }) }},
		"autocontrast": {Autocontrast(), func(p plain.Picture) plain.Picture { return mapChannels(p, plainStretch) }},
		"equalize":     {Equalize(), func(p plain.Picture) plain.Picture { return mapChannels(p, plainFlatten) }},
	}
	for _, f := range []float64{0, 0.1, 0.3333333, 0.75, 1, 1.0000001, 1.3, 1.9, 2, 7.5, 1e9} {
		all[fmt.Sprint("brightness ", f)] = pair{AdjustBrightness(f), func(p plain.Picture) plain.Picture {
			return mapValues(p, func(v int) int { return plainBlend(0, v, f) })
		}}
		all[fmt.Sprint("contrast ", f)] = pair{AdjustContrast(f), func(p plain.Picture) plain.Picture { return plainContrast(p, f) }}
		all[fmt.Sprint("saturation ", f)] = pair{AdjustSaturation(f), func(p plain.Picture) plain.Picture { return plainSaturate(p, f) }}
		all[fmt.Sprint("sharpness ", f)] = pair{AdjustSharpness(f), func(p plain.Picture) plain.Picture { return plainSharpen(p, f) }}
	}
	for _, f := range []float64{-0.5, -0.31, -0.002, 0, 0.05, 0.25, 0.5} {
		all[fmt.Sprint("hue ", f)] = pair{AdjustHue(f), func(p plain.Picture) plain.Picture {
			return mapPixels(p, func(x [3]int) [3]int { return plainHue(x, f) })
		}}
	}
	for bits := 1; bits <= 8; bits++ {
		all[fmt.Sprint("posterize ", bits)] = pair{Posterize(bits), func(p plain.Picture) plain.Picture {
			return mapValues(p, func(v int) int { return v &^ (1<<(8-bits) - 1) })
		}}
	}
	for _, p := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		all[fmt.Sprint("channels ", p)] = pair{PermuteChannels(p), func(q plain.Picture) plain.Picture {
			return mapPixels(q, func(x [3]int) [3]int { return [3]int{x[p[0]], x[p[1]], x[p[2]]} })
		}}
	}
	for _, at := range []float64{-3, 0, 0.5, 127.99, 128, 255, 255.5, 300} {
		all[fmt.Sprint("solarize ", at)] = pair{Solarize(at), func(p plain.Picture) plain.Picture {
			return mapValues(p, func(v int) int {
				if float64(v) < at {
					return v
				}
				return 255 - v
			})
		}}
	}
	return all
}

func TestColoursEqualThePlainForm(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	pictures := []plain.Picture{everyColour()}
	for _, size := range [][2]int{{1, 1}, {2, 9}, {9, 2}, {3, 3}, {4, 3}, {31, 17}, {64, 40}} {
		pictures = append(pictures, plain.RandomPicture(r, size[0], size[1]), dull(r, size[0], size[1]))
	}
	w := &Workspace{}
	for name, c := range colours() {
		for _, p := range pictures {
			got, want := inPlace(t, c.effect, w, p, r.IntN(7)), c.plain(p)
			for i := range want.Pix {
				if got.Pix[i] != want.Pix[i] {
					t.Fatalf("%s of %d×%d: value %d becomes %d, want %d; pixel was %v", name, p.W, p.H, i, got.Pix[i], want.Pix[i], p.Pix[i/3*3:][:3])
				}
			}
		}
	}
}

// everyColour has a good part of all colours, among them all with values of 0, 1, 254 and 255.
func everyColour() plain.Picture {
	var values []byte
	for v := 0; v < 256; v++ {
		if v < 6 || v > 250 || v%11 == 3 {
			values = append(values, byte(v))
		}
	}
	n := len(values)
	p := plain.NewPicture(n*n, n)
	for i := range p.W * p.H {
		copy(p.Pix[3*i:], []byte{values[i%n], values[i/n%n], values[i/n/n]})
	}
	return p
}

// dull is a picture of few values.
func dull(r *rand.Rand, w, h int) plain.Picture {
	p := plain.NewPicture(w, h)
	for i := range p.Pix {
		p.Pix[i] = byte(100 + 20*(i%3) + r.IntN(1+5*(i%3)))
	}
	return p
}

// inPlace runs an effect on p, in rows with pad bytes between them that must not change.
func inPlace(t *testing.T, e Effect, w *Workspace, p plain.Picture, pad int) plain.Picture {
	t.Helper()
	stride := 3*p.W + pad
	pix := bytes.Repeat([]byte{0xa5}, p.H*stride)
	for y := range p.H {
		copy(pix[y*stride:], p.Pix[3*y*p.W:][:3*p.W])
	}
	end := len(pix) - pad
	e.InPlace(&e, w, &pixel.Image{Pix: pix[:end:end], W: p.W, H: p.H, Stride: stride})
	q := plain.NewPicture(p.W, p.H)
	for y := range p.H {
		copy(q.Pix[3*y*p.W:], pix[y*stride:][:3*p.W])
		if between := pix[y*stride+3*p.W:][:pad]; bytes.Count(between, []byte{0xa5}) != pad {
			t.Fatalf("wrote behind row %d", y)
		}
	}
	return q
}

// BenchmarkColours changes a 224×224 picture, at each level of kernels.
func BenchmarkColours(b *testing.B) {
	for _, c := range []struct {
		name   string
		effect Effect
	}{
		{"brightness", AdjustBrightness(1.3)}, {"contrast", AdjustContrast(1.3)}, {"saturation", AdjustSaturation(1.3)}, {"hue", AdjustHue(0.1)},
		{"sharpness", AdjustSharpness(1.3)}, {"grayscale", Grayscale()}, {"autocontrast", Autocontrast()}, {"equalize", Equalize()},
		{"posterize", Posterize(4)},
		{"contrast-tensor", AdjustContrastTensor(1.3)}, {"saturation-tensor", AdjustSaturationTensor(1.3)}, {"hue-tensor", AdjustHueTensor(0.1)},
		{"grayscale-tensor", GrayscaleTensor()},
	} {
		for _, level := range kernel.Levels() {
			w := &Workspace{Level: level}
			b.Run(c.name+"/level="+level, func(b *testing.B) {
				from, m := smooth(224, 224), smooth(224, 224)
				b.ReportAllocs()
				for b.Loop() {
					copy(m.Pix, from.Pix)
					c.effect.InPlace(&c.effect, w, m)
				}
			})
		}
	}
}

// smooth is a picture without noise.
func smooth(w, h int) *pixel.Image {
	m := &pixel.Image{}
	m.Reset(w, h)
	for y := range h {
		for x := range w {
			copy(m.Pix[y*m.Stride+3*x:], []byte{byte(40 + x/2 + y/8), byte(200 - y/2), byte(90 + (x*y)>>9)})
		}
	}
	return m
}
