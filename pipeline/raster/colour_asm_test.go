//go:build amd64 && !purego

package raster

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// drawColours draws pixels of every kind: any, greys, few values, and those at the ends of the range.
func drawColours(r *rand.Rand, p []byte) {
	for i := range p {
		p[i] = byte(r.Uint32())
		switch kind := i / 24 % 4; {
		case kind == 1 && i%3 > 0:
			p[i] = p[i-1]
		case kind == 2:
			p[i] = byte(r.IntN(3) + 252*r.IntN(2))
		}
	}
}

// colourKernels are kernels that change n pixels, and their twins.
func colourKernels(factor float32) map[string][2]func(p []byte) {
	var c hueTable
	c.fillTables(byte(int(factor * 99)))
	shares := fillShares(&Workspace{}, factor)
	scalar := func(e Effect) func(p []byte) {
		return func(p []byte) {
			m := pixel.Image{Pix: p, W: len(p) / 3, H: 1, Stride: len(p)}
			e.InPlace(&e, &Workspace{Level: kernel.Scalar}, &m)
		}
	}
	var own, unit [256]float32
	rest := 1 - factor
	for v := range own {
		own[v], unit[v] = float32(float32(v)*factor), float32(v)*float32(1.0/255)
	}
	by := factor / 500
	return map[string][2]func(p []byte){
		"greys of tensors":   {func(p []byte) { setTensorGreys(&p[0], len(p)/3) }, scalar(GrayscaleTensor())},
		"mixture of tensors": {func(p []byte) { mixTensorGreys(&p[0], len(p)/3, factor, rest) }, func(p []byte) { mixPixels(p, &own, float64(rest)) }},
		"hues of tensors":    {func(p []byte) { turnTensorHues(&p[0], len(p)/3, by) }, func(p []byte) { turnUnits(p, &unit, by) }},
		"greys":              {func(p []byte) { setGreys(&p[0], len(p)/3) }, scalar(Grayscale())},
		"mixture":            {func(p []byte) { mixGreys(&p[0], len(p)/3, factor) }, func(p []byte) { saturatePixels(p, shares) }},
		"hues":               {func(p []byte) { turnHues(&p[0], len(p)/3, &c.words) }, c.turnPixels},
	}
}

// Each kernel of pixels gives what its twin does, and writes nothing behind them.
func TestColourKernels(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, factor := range []float32{0, 0.3, 0.999, 1, 1.7, 2.5, -0.4, -3, 200} {
		for name, f := range colourKernels(factor) {
			for _, n := range []int{8, 16, 24, 640} {
				p := make([]byte, 3*n+4)
				drawColours(r, p)
				want := slices.Clone(p)
				f[1](want[:3*n])
				for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
					got := guard(t, p)
					f[0](got[:3*n])
					if !bytes.Equal(got, want) {
						t.Errorf("%s by %v of %d pixels, side %d: another result", name, factor, n, side)
					}
				}
			}
		}
	}
}

// All 2²⁴ colours, turned by the kernel and by its twin.
func TestTurnEveryColour(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	by := []byte{0, 37}
	if testing.Short() {
		by = by[1:]
	}
	for _, b := range by {
		var c hueTable
		c.fillTables(b)
		got := make([]byte, 3<<16+4)
		want := make([]byte, 3<<16)
		for red := range 256 {
			for i := range 1 << 16 {
				want[3*i], want[3*i+1], want[3*i+2] = byte(red), byte(i>>8), byte(i)
			}
			copy(got, want)
			turnHues(&got[0], 1<<16, &c.words)
			c.turnPixels(want)
			if !bytes.Equal(got[:len(want)], want) {
				t.Fatalf("by %d: colours of red %d are others", b, red)
			}
		}
	}
}

func TestSumGreys(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	r := rand.New(rand.NewPCG(3, 2))
	for _, n := range []int{8, 64, 1 << 12} {
		p := guardtest.Bytes(t, 3*n+4)
		drawColours(r, p)
		want := uint64(0)
		for i := range n {
			want += uint64(greyOf(p[3*i:][:3]))
		}
		if got := sumGreys(&p[0], n); got != want {
			t.Errorf("%d greys: %d, want %d", n, got, want)
		}
	}
	white := bytes.Repeat([]byte{255}, 3<<24+4)
	if got := sumGreys(&white[0], 1<<24); got != 255<<24 {
		t.Errorf("as many as may be: %d", got)
	}
}

func TestLookUpKernels(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	r := rand.New(rand.NewPCG(4, 2))
	var tables, parts [3][256]byte
	for c := range tables {
		for v := range tables[c] {
			tables[c][v] = byte(r.Uint32())
		}
		fillParts(&parts[c], &tables[c])
	}
	for _, n := range []int{32, 64, 96, 128, 160, 256, 992} {
		p := make([]byte, 3*n)
		drawColours(r, p)
		for i := range min(n, 256) {
			p[i] = byte(i)
		}
		for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			one, each := guard(t, p[:n]), guard(t, p)
			lookUpBytes(&one[0], &parts[0], n)
			lookUpPixels(&each[0], &parts, n)
			for i, v := range p {
				if i < n && one[i] != tables[0][v] || each[i] != tables[i%3][v] {
					t.Fatalf("side %d, value %d of %d: another one for %d", side, i, n, v)
				}
			}
		}
	}
}

func TestFindRanges(t *testing.T) {
	if !kernel.Vector(kernel.Levels()[0]) {
		t.Log("this processor has no such kernel")
		return
	}
	r := rand.New(rand.NewPCG(7, 2))
	for _, n := range []int{96, 192, 960} {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(64 + r.IntN(128))
		}
		for range n / 50 {
			p[r.IntN(n)] = byte(r.Uint32())
		}
		var low, high [96]byte
		for i := range low {
			low[i], high[i] = byte(64+r.IntN(100)), byte(100+r.IntN(92))
		}
		wantLow, wantHigh := low, high
		for i, v := range p {
			wantLow[i%96], wantHigh[i%96] = min(wantLow[i%96], v), max(wantHigh[i%96], v)
		}
		for side, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
			gotLow, gotHigh := (*[96]byte)(guard(t, low[:])), (*[96]byte)(guard(t, high[:]))
			findRanges(gotLow, gotHigh, &guard(t, p)[0], n)
			if *gotLow != wantLow || *gotHigh != wantHigh {
				t.Errorf("side %d: other ranges of %d values", side, n)
			}
		}
	}
}

func TestSharpenKernel(t *testing.T) {
	if !hasFused(kernel.Levels()[0]) {
		t.Log("this processor has no such kernels")
		return
	}
	r := rand.New(rand.NewPCG(5, 2))
	for _, level := range kernel.Levels() {
		for _, factor := range []float32{0, 0.1, 1, 1.9, -2, 300, 1 << 20, -1 << 20} {
			for _, n := range []int{31, 32, 33, 47, 63, 64, 65, 100, 128, 320, 333} {
				if sharpen := (&Workspace{Level: level}).vectorSharpen(n, factor); sharpen != nil {
					checkSharpening(t, r, sharpen, n, factor)
				}
			}
		}
	}
}

func checkSharpening(t *testing.T, r *rand.Rand, sharpen func(dst, above, here, below *byte, n int, factor float32), n int, factor float32) {
	t.Helper()
	size := n + 6
	drawn, want := make([]byte, size), make([]byte, size)
	for _, guard := range []func(testing.TB, []byte) []byte{guardtest.Copy, guardtest.CopyAfter} {
		var rows [3][]byte
		for i := range rows {
			drawColours(r, drawn)
			if r.IntN(3) == 0 {
				copy(drawn, bytes.Repeat([]byte{byte(255 * r.IntN(2))}, size))
			}
			rows[i] = guard(t, drawn)
		}
		dst := guard(t, drawn[:n])
		sharpen(&dst[0], &rows[0][0], &rows[1][0], &rows[2][0], n, factor)
		sharpenRow(want, rows[0], rows[1], rows[2], fillShares(&Workspace{}, factor))
		if !bytes.Equal(dst, want[3:size-3]) {
			t.Errorf("%d values by %v: another result", n, factor)
		}
	}
}

// No kernel sharpens by factors beyond what it can hold.
func TestSharpenBeyondKernels(t *testing.T) {
	for _, factor := range []float32{1<<20 + 1, -1<<20 - 1, float32(math.Inf(1)), float32(math.NaN())} {
		if (&Workspace{Level: kernel.Levels()[0]}).vectorSharpen(999, factor) != nil {
			t.Error(factor)
		}
	}
}

// Effects are the same at both levels, for pictures of every size, with rows that follow each other and with gaps.
func TestColourLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 2))
	effects := map[string]Effect{
		"brightness": AdjustBrightness(1.3), "contrast": AdjustContrast(0.4), "saturation": AdjustSaturation(1.8), "hue": AdjustHue(0.2), "grey": Grayscale(),
		"posterize": Posterize(3), "solarize": Solarize(100), "autocontrast": Autocontrast(), "equalize": Equalize(), "sharpness": AdjustSharpness(1.9),
		"brightness of tensors": AdjustBrightnessTensor(1.3), "contrast of tensors": AdjustContrastTensor(0.4),
		"saturation of tensors": AdjustSaturationTensor(1.8), "hue of tensors": AdjustHueTensor(0.2), "grey of tensors": GrayscaleTensor(),
		"autocontrast of tensors": AutocontrastTensor(), "sharpness of tensors": AdjustSharpnessTensor(1.9),
	}
	for range 60 {
		w, h, gap := 1+r.IntN(90), 1+r.IntN(40), r.IntN(2)*r.IntN(20)
		m := pixel.Image{W: w, H: h, Stride: 3*w + gap, Pix: make([]byte, (h-1)*(3*w+gap)+3*w+pixel.Pad)}
		drawColours(r, m.Pix)
		for name, e := range effects {
			var results [2][]byte
			for i, level := range []string{kernel.Levels()[0], kernel.Scalar} {
				n := m
				n.Pix = slices.Clone(m.Pix)
				e.InPlace(&e, &Workspace{Level: level}, &n)
				results[i] = n.Pix
			}
			if !bytes.Equal(results[0], results[1]) {
				t.Errorf("%s of %s differs between levels", name, fmt.Sprintf("%d×%d pixels, gap %d", w, h, gap))
			}
		}
	}
}
