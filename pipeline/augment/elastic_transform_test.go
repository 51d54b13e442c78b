package augment

import (
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/resize"
)

// plainElastic is stretchElastic with every displacement as torch makes it.
func plainElastic(e *effect, src *pixel.Image) []byte {
	s := elastic{src: src, bilinear: e.numbers[4] != 0, fill: e.fillTensor()}
	var smoothed [2][]float32
	var along [2][]float32
	for k, side := range [2]int{src.W, src.H} {
		f := displacement{dice: e.dice, first: uint32(k) << 28, w: src.W, h: src.H, alpha: float32(e.numbers[k]), side: side, n: elasticTaps(e.numbers[2+k])}
		f.prepare(make([]float32, f.room()), e.numbers[2], e.numbers[3])
		for y := range src.H {
			f.row(y)
			for x := range src.W {
				smoothed[k] = append(smoothed[k], f.exact(x, y))
			}
		}
		s.fields[k] = f
		along[k] = make([]float32, side)
		linspace(along[k], float32(float64(1-side)/float64(side)), float32(float64(side-1)/float64(side)))
	}
	out := make([]byte, 3*src.W*src.H)
	for i := range src.W * src.H {
		s.sample(out[3*i:][:3], point{s.fields[0].place(along[0][i%src.W], smoothed[0][i]), s.fields[1].place(along[1][i/src.W], smoothed[1][i])})
	}
	return out
}

// Sums of rows and columns decide where they are sure, and nothing else.
func TestElasticIsThePlainOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for i, o := range []elasticTransform{
		{Alpha: [2]float64{50, 50}, Sigma: [2]float64{5, 5}, Interpolation: resize.Bilinear, Fill: &[3]float64{9, 0, 255}},
		{Alpha: [2]float64{50, 50}, Sigma: [2]float64{5, 5}, Interpolation: resize.Bilinear},
		{Alpha: [2]float64{400, -90}, Sigma: [2]float64{1, 2.5}, Interpolation: resize.Bilinear, Fill: &[3]float64{}},
		{Alpha: [2]float64{70, 70}, Sigma: [2]float64{0.1, 3}, Interpolation: resize.Nearest, Fill: &[3]float64{1, 2, 3}},
	} {
		src := &pixel.Image{}
		src.Reset(61, 50)
		for k := range src.Pix {
			src.Pix[k] = byte(rng.Uint32())
		}
		e := o.effect(dice{key: order.NewKey(uint64(i), "ElasticTransform/0")})
		dst := &pixel.Image{}
		dst.Reset(src.W, src.H)
		stretchElastic(&e, &workspace{}, dst, src)
		for k, want := range plainElastic(&e, src) {
			if have := dst.Pix[k/(3*src.W)*dst.Stride+k%(3*src.W)]; have != want {
				t.Fatalf("%+v: value %d is %d, want %d", o, k, have, want)
			}
		}
	}
}

func TestElasticAllocatesNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"ElasticTransform","sigma":[0.5,1]}`)
	allocatesNothing(t, `{"op":"ElasticTransform","interpolation":"nearest","sigma":[1,2]}`)
}

func TestNoiseTooCoarseForAPictureIsTheSamplesFault(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"ElasticTransform"}`), Options{})
	if _, _, err := rn.Begin(20, 60, order.Sample{}); err == nil {
		t.Error("41 taps fit 20 pixels")
	}
	if _, _, err := rn.Begin(21, 60, order.Sample{}); err != nil {
		t.Error(err)
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
	o := elasticTransform{Alpha: [2]float64{50, 50}, Sigma: [2]float64{5, 5}, Interpolation: resize.Bilinear, Fill: &[3]float64{}}
	e := o.effect(dice{})
	var w workspace
	for b.Loop() {
		stretchElastic(&e, &w, dst, src)
	}
}
