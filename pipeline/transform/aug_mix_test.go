package transform

import (
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

func TestAugMixAllocatesNothing(t *testing.T) {
	for _, plan := range []string{
		`{"op":"AugMix","severity":9,"mixture_width":5,"fill":3},{"op":"RandomHorizontalFlip"}`,
		`{"op":"AugMix","interpolation":"nearest","chain_depth":4},{"op":"AugMix","all_ops":false,"alpha":0.2}`,
	} {
		allocatesNothing(t, plan)
	}
}

// Mean and variance of gamma are its shape.
func TestGammaHasItsMoments(t *testing.T) {
	for _, alpha := range []float64{0.1, 0.5, 1, 3, 50} {
		const n = 40_000
		var sum, square float64
		for i := range uint32(n) {
			x := drawGamma(raster.RNG{Key: order.NewKey(1, "AugMix/0"), Sample: order.Sample{Index: i}}, 256, alpha)
			sum, square = sum+x, square+(x-alpha)*(x-alpha)
		}
		if off := (sum/n - alpha) / math.Sqrt(alpha/n); math.Abs(off) > 4 {
			t.Errorf("gamma(%v): the mean is %.1f standard deviations off", alpha, off)
		}
		// Its fourth central moment is 3a²+6a.
		if off := (square/n - alpha) / math.Sqrt((2*alpha*alpha+6*alpha)/n); math.Abs(off) > 4 {
			t.Errorf("gamma(%v): the variance is %.1f standard deviations off", alpha, off)
		}
	}
}

func TestReplayShowsTheChains(t *testing.T) {
	tells(t, `{"op":"AugMix","mixture_width":2}`, 331, 331, `[{"op":"AugMix","applied":true,"parameters":{"weight":0.6477156281471252,"chains":[{"weight":0.2913287878036499,"ops":[{"name":"ShearX","magnitude":0.03333333507180214},{"name":"Contrast","magnitude":0.19999998807907104}]},`+
		`{"weight":0.06095561012625694,"ops":[{"name":"TranslateY","magnitude":0},{"name":"TranslateX","magnitude":12.259259223937988},{"name":"ShearX","magnitude":0}]}]}}]`)
}

func TestAugMixArguments(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"AugMix"}`: `[{"op":"AugMix","severity":3,"mixture_width":3,"chain_depth":-1,"alpha":1,"all_ops":true,"interpolation":"bilinear","fill":null}]`,
		`{"op":"AugMix","severity":10,"mixture_width":1,"chain_depth":0,"alpha":0.5,"all_ops":false,"interpolation":"nearest","fill":[1,2,3]}`: `[{"op":"AugMix","severity":10,"mixture_width":1,"chain_depth":-1,"alpha":0.5,"all_ops":false,"interpolation":"nearest","fill":[1,2,3]}]`,
	} {
		if got, _ := parse(t, plan).MarshalJSON(); string(got) != want {
			t.Errorf("%s\n gives %s\n  want %s", plan, got, want)
		}
	}
	for plan, want := range map[string]string{
		`{"op":"AugMix","severity":11}`:             `severity: must be a whole number from 1 to 10, got 11; nearest: 10`,
		`{"op":"AugMix","alpha":0}`:                 `alpha: must be a number from 0.01 to 1000, got 0; nearest: 0.01`,
		`{"op":"AugMix","interpolation":"bicubic"}`: `interpolation: works on tensors, which have no bicubic warps; nearest: "bilinear"`,
	} {
		if _, err := tryParse(t, plan); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s\n says %v\n want … %s", plan, err, want)
		}
	}
}
