package raster

import (
	"math"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

func TestNormalIsTheNormalDistribution(t *testing.T) {
	for x := -8.0; x <= 8; x += 1.0 / 64 {
		if want := math.Erfc(-x/math.Sqrt2) / 2; math.Abs(normalShare(x)-want) > 1e-11 {
			t.Errorf("below %v: %v, want %v", x, normalShare(x), want)
		}
	}
}

// Counts of the noise's numbers, against the shares of the normal distribution, truncated towards zero.
func TestNoiseIsNormalAndTruncated(t *testing.T) {
	for _, c := range []struct{ mean, sigma float64 }{{0, 0.1}, {0.05, 0.02}, {-0.1, 0.3}, {0.3, 1e-4}, {0, 2}} {
		var n Noise
		n.setDistribution(255*c.mean, 255*c.sigma)
		below := func(x float64) float64 { return math.Erfc(-(x-255*c.mean)/(255*c.sigma)/math.Sqrt2) / 2 }
		counts := map[int32]float64{}
		const draws = 200_000
		key := order.NewKey(1, "x/0")
		for i := range uint32(draws / 4) {
			for _, x := range key.Block(order.Sample{Index: 3}, i) {
				counts[n.valueOf(x)]++
			}
		}
		x, kinds := 0.0, 0.0
		for k := -255.0; k <= 255; k++ {
			low, high := k, k+1
			if k <= 0 {
				low = k - 1
			}
			if k < 0 {
				high = k
			}
			share := below(high) - below(low)
			switch k {
			case -255:
				share = below(high)
			case 255:
				share = 1 - below(low)
			}
			if want := share * draws; want > 10 {
				x += (counts[int32(k)] - want) * (counts[int32(k)] - want) / want
				kinds++
			}
		}
		// The mean of chi-square is the degrees of freedom, its variance twice that.
		if z := (x - kinds) / math.Sqrt(2*kinds+1); z > 4 || kinds == 0 {
			t.Errorf("%+v: chi-square %.0f for %.0f kinds", c, x, kinds)
		}
	}
}

func TestNoiseWithoutSpreadIsTheMean(t *testing.T) {
	for mean, want := range map[float64]int32{0: 0, 3: 3, 3.9: 3, -3: -3, -3.9: -3, 0.5: 0, -0.5: 0, 400: 255, -400: -255, -255: -255, -254: -254} {
		var n Noise
		n.setDistribution(mean, 0)
		for _, x := range []uint32{0, 1 << 31, math.MaxUint32} {
			if got := n.valueOf(x); got != want {
				t.Errorf("mean %v: word %#x gives %d, want %d", mean, x, got, want)
			}
		}
	}
}

// Values, samples and ops have noise of their own.
func TestNoiseDoesNotRepeat(t *testing.T) {
	n := NewNoise(0, 255*0.1)
	noisy := func(path string, index uint32) *pixel.Image {
		m := &pixel.Image{}
		m.Reset(64, 64)
		for i := range m.Pix {
			m.Pix[i] = 128
		}
		e := AddNoise(n, RNG{Key: order.NewKey(1, path), Sample: order.Sample{Index: index}})
		addNoise(&e, nil, m)
		return m
	}
	a := noisy("x/0", 0)
	for name, b := range map[string]*pixel.Image{"another sample": noisy("x/0", 1), "another op": noisy("x/1", 0)} {
		if r := correlation(a.Pix[:3*64*64], b.Pix); math.Abs(r) > 0.04 {
			t.Errorf("%s: correlation %v", name, r)
		}
	}
	for _, shift := range []int{1, 3, 4, 192} {
		if r := correlation(a.Pix[:3*64*63], a.Pix[shift:]); math.Abs(r) > 0.04 {
			t.Errorf("values %d apart: correlation %v", shift, r)
		}
	}
}

// correlation of bytes around 128.
func correlation(a, b []byte) float64 {
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range a {
		x, y := float64(a[i])-128, float64(b[i])-128
		xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
	}
	return xy / math.Sqrt(xx*yy)
}

func BenchmarkNoise(b *testing.B) {
	n, m := NewNoise(0, 25.5), smooth(224, 224)
	e := AddNoise(n, RNG{Key: order.NewKey(1, "x/0")})
	for b.Loop() {
		addNoise(&e, nil, m)
	}
}
