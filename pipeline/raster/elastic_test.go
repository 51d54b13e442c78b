package raster

import (
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// plainElastic is stretchElastic with every displacement as torch makes it.
func plainElastic(e *Effect, src *pixel.Image) []byte {
	s := elasticWarp{src: src, bilinear: e.Numbers[4] != 0, fill: e.fillTensor()}
	var smoothed [2][]float32
	var along [2][]float32
	for k, side := range [2]int{src.W, src.H} {
		f := displacementField{rng: e.RNG, first: uint32(k) << 28, w: src.W, h: src.H, alpha: float32(e.Numbers[k]), side: side, n: ElasticTaps(e.Numbers[2+k])}
		f.prepareKernels(make([]float32, f.floatsNeeded()), e.Numbers[2], e.Numbers[3])
		for y := range src.H {
			f.smoothRow(y)
			for x := range src.W {
				smoothed[k] = append(smoothed[k], f.exactValue(x, y))
			}
		}
		s.fields[k] = f
		along[k] = make([]float32, side)
		fillLinspace(along[k], float32(float64(1-side)/float64(side)), float32(float64(side-1)/float64(side)))
	}
	out := make([]byte, 3*src.W*src.H)
	for i := range src.W * src.H {
		s.samplePixel(out[3*i:][:3], sourcePoint32{s.fields[0].sourceCoordinate(along[0][i%src.W], smoothed[0][i]), s.fields[1].sourceCoordinate(along[1][i/src.W], smoothed[1][i])})
	}
	return out
}

// Sums of rows and columns decide where they are sure, and nothing else.
func TestElasticIsThePlainOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for i, o := range []struct {
		alpha, sigma [2]float64
		Sampling
	}{
		{[2]float64{50, 50}, [2]float64{5, 5}, Sampling{Interpolation: "bilinear", Fill: &[3]float64{9, 0, 255}}},
		{[2]float64{50, 50}, [2]float64{5, 5}, Sampling{Interpolation: "bilinear"}},
		{[2]float64{400, -90}, [2]float64{1, 2.5}, Sampling{Interpolation: "bilinear", Fill: &[3]float64{}}},
		{[2]float64{70, 70}, [2]float64{0.1, 3}, Sampling{Interpolation: "nearest", Fill: &[3]float64{1, 2, 3}}},
	} {
		src := &pixel.Image{}
		src.Reset(61, 50)
		for k := range src.Pix {
			src.Pix[k] = byte(random.Uint32())
		}
		e := Displace(o.alpha, o.sigma, o.Sampling, RNG{Key: order.NewKey(uint64(i), "ElasticTransform/0")})
		dst := &pixel.Image{}
		dst.Reset(src.W, src.H)
		stretchElastic(&e, &Workspace{}, dst, src)
		for k, want := range plainElastic(&e, src) {
			if have := dst.Pix[k/(3*src.W)*dst.Stride+k%(3*src.W)]; have != want {
				t.Fatalf("%+v: value %d is %d, want %d", o, k, have, want)
			}
		}
	}
}

func BenchmarkElastic(b *testing.B) {
	src, dst := &pixel.Image{}, &pixel.Image{}
	src.Reset(224, 224)
	dst.Reset(224, 224)
	for y := range src.H {
		for x := range src.W {
			copy(src.Pix[y*src.Stride+3*x:], []byte{byte(x), byte(x + y), byte(2 * y)})
		}
	}
	e := Displace([2]float64{50, 50}, [2]float64{5, 5}, Sampling{Interpolation: "bilinear", Fill: &[3]float64{}}, RNG{})
	var w Workspace
	for b.Loop() {
		stretchElastic(&e, &w, dst, src)
	}
}
