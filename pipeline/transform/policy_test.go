package transform

import (
	"encoding/json"
	"image"
	"math"
	"strings"
	"testing"
)

// Values that torch.linspace gives.
func TestSpacedRoundsAsTorchDoes(t *testing.T) {
	for _, v := range []struct {
		a, b float32
		i, n int
		want float64
	}{
		{0, 0.3, 9, 31, 0x1.70a3d80000000p-4},
		{0, 0.3, 14, 31, 0x1.1eb8540000000p-3},
		{0, 0.3, 15, 31, 0x1.3333340000000p-3},
		{0, 0.3, 29, 31, 0x1.28f5c40000000p-2},
		{0, 0.99, 7, 31, 0x1.d916880000000p-3},
		{0, 0.99, 22, 31, 0x1.73b6460000000p-1},
		{1, 0, 4, 31, 0x1.bbbbbc0000000p-1},
		{1, 0, 26, 31, 0x1.1111120000000p-3},
		{1, 0, 3, 10, 0x1.5555560000000p-1},
		{1, 0, 6, 10, 0x1.5555560000000p-2},
		{0, 226.58610271903322, 9, 31, 0x1.0fe7400000000p+6},
		{0, 169.93957703927492, 20, 31, 0x1.c52c160000000p+6},
		{0, 135, 30, 31, 0x1.0e00000000000p+7},
		{0, 30, 1, 2, 0x1.e000000000000p+4},
		{0, 0.9, 613, 1000, 0x1.1ac0ce0000000p-1},
	} {
		if got := spacedValue(v.a, v.b, v.i, v.n); got != v.want {
			t.Errorf("linspace(%v, %v, %d)[%d] = %x, want %x", v.a, v.b, v.n, v.i, got, v.want)
		}
	}
}

func TestPoliciesAreWhole(t *testing.T) {
	for name, text := range policies {
		pairs := parsePolicy(text)
		if len(pairs) != 25 {
			t.Errorf("%s has %d pairs", name, len(pairs))
		}
		for _, c := range pairs[7] {
			if got := usual.policyOpAt(c.name, c.bin, 10, true, image.Pt(100, 100)); got.Name != c.name {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

func TestPoliciesAllocateNothing(t *testing.T) {
	for _, plan := range []string{
		`{"op":"RandAugment","num_ops":3,"fill":9},{"op":"RandomHorizontalFlip"}`,
		`{"op":"TrivialAugmentWide","interpolation":"bilinear"},{"op":"RandomHorizontalFlip"}`,
		`{"op":"RandAugment","num_ops":3,"dialect":"tensor","interpolation":"bilinear","fill":9},{"op":"RandomHorizontalFlip"}`,
		`{"op":"AutoAugment"},{"op":"AutoAugment","policy":"cifar10"},{"op":"AutoAugment","policy":"svhn"}`,
	} {
		allocatesNothing(t, plan)
	}
}

func TestReplayShowsWhatAPolicyApplied(t *testing.T) {
	tells(t, `{"op":"RandAugment"},{"op":"TrivialAugmentWide"},{"op":"AutoAugment"}`, 331, 331, `[{"op":"RandAugment","applied":true,"parameters":{"ops":[{"name":"Contrast","magnitude":0.26999998092651367},{"name":"Color","magnitude":0.26999998092651367}]}},`+
		`{"op":"TrivialAugmentWide","applied":true,"parameters":{"ops":[{"name":"ShearX","magnitude":0.16499999165534973}]}},`+
		`{"op":"AutoAugment","applied":true,"parameters":{"ops":[{"name":"Contrast","magnitude":-0.7999999523162842}]}}]`)
}

func TestPolicyArguments(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"RandAugment"}`: `[{"op":"RandAugment","num_ops":2,"magnitude":9,"num_magnitude_bins":31,"interpolation":"nearest","fill":null}]`,
		`{"op":"RandAugment","num_ops":0,"magnitude":4,"num_magnitude_bins":5,"interpolation":"bicubic","fill":7}`: `[{"op":"RandAugment","num_ops":0,"magnitude":4,"num_magnitude_bins":5,"interpolation":"bicubic","fill":[7,7,7]}]`,
		`{"op":"TrivialAugmentWide"}`:                    `[{"op":"TrivialAugmentWide","num_magnitude_bins":31,"interpolation":"nearest","fill":null}]`,
		`{"op":"TrivialAugmentWide","dialect":"tensor"}`: `[{"op":"TrivialAugmentWide","num_magnitude_bins":31,"interpolation":"nearest","fill":null,"dialect":"tensor"}]`,
		`{"op":"AutoAugment","policy":"svhn"}`:           `[{"op":"AutoAugment","policy":"svhn","interpolation":"nearest","fill":null}]`,
	} {
		if got, _ := parse(t, plan).MarshalJSON(); string(got) != want {
			t.Errorf("%s\n gives %s\n  want %s", plan, got, want)
		}
	}
	for plan, want := range map[string]string{
		`{"op":"RandAugment","magnitude":31}`:                               `magnitude: must be a whole number from 0 to 30, got 31; nearest: 30`,
		`{"op":"RandAugment","num_magnitude_bins":9}`:                       `magnitude: must be a whole number from 0 to 8, got 9; nearest: 8`,
		`{"op":"RandAugment","num_ops":-1}`:                                 `num_ops: must be a whole number from 0 to 64, got -1; nearest: 0`,
		`{"op":"TrivialAugmentWide","num_magnitude_bins":1}`:                `num_magnitude_bins: must be a whole number from 2 to 1000, got 1; nearest: 2`,
		`{"op":"AutoAugment","dialect":"tensor","interpolation":"bicubic"}`: `interpolation: tensors have no bicubic warps; nearest: "bilinear"`,
		`{"op":"AutoAugment","policy":"cifar100"}`:                          `policy: no such policy, got "cifar100"; nearest: "cifar10"`,
	} {
		if _, err := tryParse(t, plan); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s\n says %v\n want … %s", plan, err, want)
		}
	}
}

// Thresholds of the first generation are spaced from 255; v2's, 255 times what is spaced from 1, lie beside most of
// them.
func TestSolarizeOfGenerations(t *testing.T) {
	first, second := generation{1}.applyTo(wide), generation{}.applyTo(wide)
	same := 0
	for bin := range 31 {
		a := first.policyOpAt("Solarize", bin, 31, false, image.Point{})
		b := second.policyOpAt("Solarize", bin, 31, false, image.Point{})
		if a.Magnitude != spacedValue(255, 0, bin, 31) || math.Abs(a.Magnitude-255*b.Magnitude) > 1e-4 {
			t.Errorf("bin %d: %v and 255 × %v", bin, a.Magnitude, b.Magnitude)
		}
		if a.Magnitude == 255*b.Magnitude {
			same++
		}
	}
	if same == 31 {
		t.Error("all thresholds are the same")
	}
	if _, err := Parse([]json.RawMessage{json.RawMessage(`{"op": "RandAugment", "generation": 1, "dialect": "tensor"}`)}); err == nil {
		t.Error("the first generation has no arithmetic on tensors here")
	}
}
