package raster

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/internal/plain"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// plainBlur is one convolution in two dimensions, each product added with one rounding.
func plainBlur(p plain.Picture, w, h int, sigma float64) plain.Picture {
	kx, ky := make([]float32, w), make([]float32, h)
	gaussianKernel(kx, float32(sigma))
	gaussianKernel(ky, float32(sigma))
	reflect := func(i, n int) int {
		i = max(i, -i)
		return min(i, 2*n-2-i)
	}
	q := plain.NewPicture(p.W, p.H)
	for i := range q.Pix {
		x, y, sum := i/3%p.W, i/3/p.W, float32(0)
		for dy := range h {
			for dx := range w {
				v := p.At(reflect(x+dx-w/2, p.W), reflect(y+dy-h/2, p.H))[i%3]
				sum = order.Fused(float32(v), ky[dy]*kx[dx], sum)
			}
		}
		q.Pix[i] = byte(math.RoundToEven(float64(sum)))
	}
	return q
}

func TestBlurEqualsThePlainForm(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, c := range []struct {
		width, height, kw, kh int
		sigma                 float64
	}{
		{1, 1, 1, 1, 1}, {2, 2, 3, 3, 0.8}, {9, 30, 3, 3, 0.1}, {40, 31, 5, 5, 1}, {31, 40, 9, 9, 2}, {30, 30, 23, 23, 0.1}, {50, 41, 23, 23, 2},
		{50, 41, 23, 23, 1.1}, {128, 130, 23, 23, 0.7}, {33, 20, 7, 3, 0.6}, {20, 33, 1, 15, 5}, {24, 24, 47, 47, 40}, {60, 60, 15, 17, 1e-6}, {64, 64, 63, 63, 12.5},
	} {
		for _, p := range []plain.Picture{plain.RandomPicture(r, c.width, c.height), dull(r, c.width, c.height), ties(c.width, c.height)} {
			want := plainBlur(p, c.kw, c.kh, c.sigma)
			for _, level := range kernel.Levels() {
				got, w := plain.NewPicture(c.width, c.height), &Workspace{Level: level}
				for range 2 { // over what the workspace holds then
					src := &pixel.Image{Pix: bytes.Clone(p.Pix), W: p.W, H: p.H, Stride: 3 * p.W}
					e := GaussianBlur(c.kw, c.kh, c.sigma)
					e.Across(&e, w, &pixel.Image{Pix: got.Pix, W: p.W, H: p.H, Stride: 3 * p.W}, src)
					if !got.Equal(want) {
						t.Errorf("%s: %+v: differs", level, c)
					}
				}
			}
		}
	}
}

// ties is black and white in turn: sums near halves.
func ties(w, h int) plain.Picture {
	p := plain.NewPicture(w, h)
	for i := range p.Pix {
		p.Pix[i] = byte(255 * (i / 3 % p.W % 2))
	}
	return p
}

// The taps that torch 2.15 gives with AVX-512: torch.softmax(torch.linspace(-lim, lim, k).div(sigma).pow(2).neg(), 0).
func TestKernelIsTorchs(t *testing.T) {
	for _, c := range []struct {
		n     int
		sigma float32
		want  []float32 // up to the middle
	}{
		{3, 0.5, []float32{0x1.b440aap-4, 0x1.92efd4p-1}},
		{5, 1.3, []float32{0x1.94951p-4, 0x1.eb695ep-3, 0x1.4a4c16p-2}},
		{9, 2.0, []float32{0x1.c4b2fp-6, 0x1.0f7dfap-4, 0x1.fb36c6p-4, 0x1.70fef8p-3, 0x1.a22092p-3}},
		{23, 1.7, []float32{
			0x1.a1e35ep-33, 0x1.ee1424p-28, 0x1.9d4b06p-23, 0x1.e92fbap-19, 0x1.99a74ap-15, 0x1.e56a3ep-12, 0x1.96f1b6p-9,
			0x1.e2bd0ap-7, 0x1.9525fap-5, 0x1.e123cep-4, 0x1.9440dcp-3, 0x1.e09baap-3,
		}},
	} {
		got := make([]float32, c.n)
		gaussianKernel(got, c.sigma)
		for i := range c.want {
			if got[i] != c.want[i] || got[c.n-1-i] != c.want[i] {
				t.Errorf("%d taps, sigma %v: tap %d is %x, want %x", c.n, c.sigma, i, got[i], c.want[i])
			}
		}
	}
}

func BenchmarkBlur(b *testing.B) {
	from, to := smooth(224, 224), &pixel.Image{}
	to.Reset(224, 224)
	for _, level := range kernel.Levels() {
		w := &Workspace{Level: level}
		for name, e := range map[string]Effect{
			"23 taps, sigma 2": GaussianBlur(23, 23, 2), "23 taps, sigma 1": GaussianBlur(23, 23, 1), "5 taps, sigma 1": GaussianBlur(5, 5, 1),
		} {
			b.Run(level+"/"+name, func(b *testing.B) {
				for b.Loop() {
					e.Across(&e, w, to, from)
				}
			})
		}
	}
}
