package raster

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// The transform, against its definition in real numbers.
func TestForwardTransformIsTheCosineTransform(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	worst := 0.0
	for range 300 {
		var pix [7*11 + 8]byte
		for i := range pix {
			pix[i] = byte(r.Uint32())
			if r.IntN(3) == 0 {
				pix[i] = 255 * byte(r.IntN(2))
			}
		}
		var b kernel.Block
		forwardDCT(&b, pix[:], 11)
		for v := range 8 {
			for u := range 8 {
				sum := 0.0
				for y := range 8 {
					for x := range 8 {
						sum += (float64(pix[11*y+x]) - 128) * math.Cos(float64(2*x+1)*float64(u)*math.Pi/16) * math.Cos(float64(2*y+1)*float64(v)*math.Pi/16)
					}
				}
				for _, k := range []int{u, v} {
					if k == 0 {
						sum /= math.Sqrt2
					}
				}
				worst = max(worst, math.Abs(float64(b[8*v+u])-2*sum)) // ¼ times 8
			}
		}
	}
	if worst > 2 {
		t.Errorf("coefficients are up to %v eighths off", worst)
	}
}

func TestDivideRoundsHalvesAwayFromZero(t *testing.T) {
	var q [64]uint16
	for i := range q {
		q[i] = uint16(1 + 4*i)
	}
	by := makeDivisors(&q)
	for x := -9000; x <= 9000; x += 7 {
		var b kernel.Block
		for i := range b {
			b[i] = int16(x)
		}
		divideBlock(&b, &by)
		for i, got := range b {
			if want := math.Round(float64(x) / float64(8*int(q[i]))); float64(got) != want {
				t.Fatalf("%d ÷ 8·%d is %d, want %v", x, q[i], got, want)
			}
		}
	}
}

func TestQuantizationScales(t *testing.T) {
	for quality, want := range map[int][2]uint16{1: {255, 255}, 10: {80, 255}, 25: {32, 198}, 50: {16, 99}, 75: {8, 50}, 95: {2, 10}, 100: {1, 1}} {
		q := scaleQuantization(&lumaSteps, quality)
		if got := [2]uint16{q[0], q[63]}; got != want {
			t.Errorf("quality %d: %v, want %v", quality, got, want)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	level, err := kernel.Best()
	if err != nil {
		b.Fatal(err)
	}
	w, from, to := &Workspace{Level: level}, smooth(224, 224), smooth(224, 224)
	e := CompressJPEG(75)
	for b.Loop() {
		e.Across(&e, w, to, from)
	}
}

// What only a huge picture needs is given back.
func TestWorkspaceShrinks(t *testing.T) {
	w := &Workspace{Level: kernel.Scalar}
	for _, side := range []int{100, 4200} {
		from, to := smooth(side, side), &pixel.Image{}
		to.Reset(side, side)
		e := CompressJPEG(50)
		e.Across(&e, w, to, from)
		e = BlendWith("Invert", 0.5)
		e.InPlace(&e, w, to)
		w.Shrink(32 << 20)
		if held := cap(w.jpeg.planes[0].pix) > 0; held != (side == 100) {
			t.Errorf("%d pixels wide: memory is held: %v", side, held)
		}
		if held := cap(w.Pictures[0].Pix) > 0; held != (side == 100) {
			t.Errorf("%d pixels wide: a picture is held: %v", side, held)
		}
	}
}
