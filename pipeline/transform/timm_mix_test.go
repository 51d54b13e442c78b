package transform

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

const timmMixPlan = `{"op":"TimmMix","std":null,"mixture_width":2,"ops":[["Rotate",1,3],["ShearX",1,3],["TranslateYRel",1,3],
	["PosterizeIncreasing",1,3],["ColorIncreasing",1,3],["SharpnessIncreasing",1,3],["Equalize",0.5,3]]}`

func TestTimmMixAllocatesNothing(t *testing.T) {
	allocatesNothing(t, timmMixPlan)
	allocatesNothing(t, strings.Replace(timmMixPlan, `"std"`, `"blended":true,"chain_depth":4,"std"`, 1)+`,{"op":"RandomHorizontalFlip"}`)
}

func TestReplayShowsTheChainsOfTimm(t *testing.T) {
	tells(t, timmMixPlan, 331, 331, `[{"op":"TimmMix","applied":true,"parameters":{"weight":0.16702806949615479,"chains":[{"weight":0.29332947731018066,"ops":[{"name":"SharpnessIncreasing","magnitude":0.966659026145935,"interpolation":"bilinear"},{"name":"SharpnessIncreasing","magnitude":0.917106158733368,"interpolation":"bilinear"}]},`+
		`{"weight":0.7066705226898193,"ops":[{"name":"TranslateYRel","magnitude":-0.0724169397354126,"interpolation":"bicubic"},{"name":"SharpnessIncreasing","magnitude":0.9865924042463302,"interpolation":"bilinear"}]}]}}]`)
}

// Of weights in turn each is in the picture, in the end, as much as in the sum.
func TestSharesInTurn(t *testing.T) {
	weights, share := [mostChains]float32{0.2, 0.5, 0.3}, float32(0.8)
	shares := sharesInTurn(weights, 3, share)
	own, in := 1.0, [3]float64{}
	for i := range in {
		own *= float64(1 - shares[i])
		for k := range i {
			in[k] *= float64(1 - shares[i])
		}
		in[i] = float64(shares[i])
	}
	for i, want := range []float64{0.16, 0.4, 0.24} {
		if math.Abs(in[i]-want) > 1e-6 {
			t.Errorf("chain %d has %v of the picture, not %v", i, in[i], want)
		}
	}
	if math.Abs(own-0.2) > 1e-6 {
		t.Errorf("the picture itself has %v, not 0.2", own)
	}
}

// Means and variances of Beta(a, a) and of Dirichlet's distribution with three parameters a.
func TestWeightsOfTimmHaveTheirMoments(t *testing.T) {
	for _, alpha := range []float64{0.3, 1, 4} {
		const n = 20_000
		o := &timmMix{mixture: mixture{Width: 3, Alpha: alpha}}
		var shares, shareSquares, first, squares float64
		for i := range uint32(n) {
			share, weights := o.drawWeights(raster.RNG{Key: order.NewKey(1, "TimmMix/0"), Sample: order.Sample{Index: i}})
			shares, shareSquares = shares+float64(share), shareSquares+math.Pow(float64(share)-0.5, 2)
			first, squares = first+float64(weights[0]), squares+math.Pow(float64(weights[0])-1.0/3, 2)
			if sum := weights[0] + weights[1] + weights[2]; math.Abs(float64(sum)-1) > 1e-6 {
				t.Fatalf("weights add up to %v", sum)
			}
		}
		for what, v := range map[string][2]float64{
			"mean share":         {shares / n, 0.5},
			"variance of shares": {shareSquares / n, 1 / (4 * (2*alpha + 1))},
			"mean weight":        {first / n, 1.0 / 3},
			"variance":           {squares / n, 2.0 / 9 / (3*alpha + 1)},
		} {
			if math.Abs(v[0]-v[1]) > 0.012 {
				t.Errorf("alpha %v: %s is %v, not %v", alpha, what, v[0], v[1])
			}
		}
	}
}

func TestTimmMixPlans(t *testing.T) {
	ops := `"ops":[["Rotate",1,3]]`
	for arguments, want := range map[string]string{
		``:                                    "ops",
		`,"ops":[]`:                           "1 to 64 ops",
		`,"ops":[["Rotate",1]]`:               "name, probability and magnitude",
		`,"ops":[["Blur",1,3]]`:               "no such name",
		`,"mixture_width":33,` + ops:          "from 1 to 32",
		`,"chain_depth":33,` + ops:            "from -1 to 32",
		`,"alpha":0,` + ops:                   "from 0.01 to 1000",
		`,"most_magnitude":30,` + ops:         "from 0 to 29",
		`,"blended":3,` + ops:                 "blended",
		`,"interpolation":[],` + ops:          "interpolation",
		`,"dialect":"tensor",` + ops:          "dialect",
		`,"groups":[[["Invert",1,1]]],` + ops: "groups",
	} {
		if _, err := Parse([]json.RawMessage{json.RawMessage(`{"op":"TimmMix"` + arguments + `}`)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	text, _ := json.Marshal(parse(t, timmMixPlan))
	again, err := Parse(unmarshalSteps(t, text))
	if second, _ := json.Marshal(again); err != nil || string(second) != string(text) {
		t.Errorf("%v: %s and %s", err, text, second)
	}
}
