package transform

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

const timmPlan = `{"op":"TimmPolicy","layers":3,"std":0.5,"groups":[[["Rotate",0.5,9]],[["ShearX",0.5,9]],[["TranslateYRel",0.5,9],["SolarizeAdd",1,9]],
	[["PosterizeIncreasing",0.5,9]],[["ColorIncreasing",0.5,9]],[["SharpnessIncreasing",0.5,9]]]}`

func TestTimmPoliciesAllocateNothing(t *testing.T) {
	allocatesNothing(t, timmPlan+`,{"op":"RandomHorizontalFlip"}`)
}

func TestReplayShowsWhatATimmPolicyApplied(t *testing.T) {
	rn := newRunner(t, parse(t, timmPlan), Options{Seed: 17})
	draws, err := rn.Draws(331, 331, order.Sample{Index: 3})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(draws)
	// The numbers pin the recipe: seed 17, sample 3 of epoch 0.
	want := `[{"op":"TimmPolicy","applied":true,"parameters":{"ops":[{"name":"ShearX","magnitude":0.26878754857581494,"interpolation":"bicubic"},` +
		`{"name":"Rotate","magnitude":24.814324978935637,"interpolation":"bilinear"}]}}]`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The arguments of timm's functions at the ends and in the middle of their levels, by its own code.
func TestArgumentsOfTimm(t *testing.T) {
	o := &timmPolicy{Pixels: 100, Share: 0.45}
	for _, v := range []struct {
		name        string
		level, sign float64
		want        float64
	}{
		{"Rotate", 0.9, -1, -27}, {"Posterize", 0.9, 1, 3}, {"PosterizeIncreasing", 1, 1, 0}, {"PosterizeOriginal", 1, 1, 8},
		{"Solarize", 1, 1, 256}, {"SolarizeIncreasing", 0.9, 1, 26}, {"SolarizeAdd", 0.9, 1, 99}, {"SolarizeAdd", 2, 1, 128},
		{"Color", 0, 1, 0.1}, {"Color", 0.5, -1, 1}, {"ContrastIncreasing", 1, -1, 0.1}, {"ContrastIncreasing", 2, 1, 2.8},
		{"ShearY", 0.5, -1, -0.15}, {"TranslateX", 0.5, 1, 50}, {"TranslateXRel", 1, -1, -0.45}, {"Desaturate", 1, 1, 1}, {"Equalize", 1, -1, 0},
	} {
		if got := o.argumentOf(v.name, v.level, v.sign); math.Abs(got-v.want) > 1e-12 {
			t.Errorf("%s at %v is %v, not %v", v.name, v.level, got, v.want)
		}
	}
}

func TestTimmPlans(t *testing.T) {
	group := `[[["Rotate",0.5,9]]]`
	for arguments, want := range map[string]string{
		``:                                      "groups",
		`,"groups":[]`:                          "groups",
		`,"groups":[[]]`:                        "a group has 1 to 8 ops",
		`,"groups":[[["Rotate",0.5]]]`:          "name, probability and magnitude",
		`,"groups":[[["Blur",0.5,9]]]`:          "no such name",
		`,"groups":[[["Rotate",1.5,9]]]`:        "from 0 to 1",
		`,"layers":65,"groups":` + group:        "layers",
		`,"interpolation":[],"groups":` + group: "interpolation",
		`,"interpolation":["lanczos"],"groups":` + group: "no such name",
		`,"std":-1,"groups":` + group:                    "std",
		`,"dialect":"tensor","groups":` + group:          "dialect",
	} {
		if _, err := Parse([]json.RawMessage{json.RawMessage(`{"op":"TimmPolicy"` + arguments + `}`)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	c := parse(t, timmPlan)
	text, _ := json.Marshal(c)
	again, err := Parse(unmarshalSteps(t, text))
	if second, _ := json.Marshal(again); err != nil || string(second) != string(text) {
		t.Errorf("%v: %s and %s", err, text, second)
	}
}

func unmarshalSteps(t *testing.T, text []byte) (steps []json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	return steps
}
