package transform

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

const timmPlan = `{"op":"TimmPolicy","layers":3,"std":0.5,"groups":[[["Rotate",0.5,9]],[["ShearX",0.5,9]],[["TranslateYRel",0.5,9],["SolarizeAdd",1,9]],
	[["PosterizeIncreasing",0.5,9]],[["ColorIncreasing",0.5,9]],[["SharpnessIncreasing",0.5,9]]]}`

func TestTimmPoliciesAllocateNothing(t *testing.T) {
	allocatesNothing(t, timmPlan+`,{"op":"RandomHorizontalFlip"}`)
	allocatesNothing(t, strings.Replace(timmPlan, `"std"`, `"weights":[1,2,0,3,1,1],"std"`, 1)+`,{"op":"RandomHorizontalFlip"}`)
}

func TestReplayShowsWhatATimmPolicyApplied(t *testing.T) {
	tells(t, timmPlan, 331, 331, `[{"op":"TimmPolicy","applied":true,"parameters":{"ops":[{"name":"ShearX","magnitude":0.26878754857581494,"interpolation":"bicubic"},`+
		`{"name":"Rotate","magnitude":24.814324978935637,"interpolation":"bilinear"}]}}]`)
}

// The arguments of timm's functions at the ends and in the middle of their levels, by its own code.
func TestArgumentsOfTimm(t *testing.T) {
	o := &timmSpace{Pixels: 100, Share: 0.45}
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
		`,"layers":1,"weights":[1,2],"groups":` + group:  "must be a list of 1 numbers",
		`,"layers":1,"weights":[-1],"groups":` + group:   "weights",
		`,"layers":1,"weights":[0],"groups":` + group:    "1 of them need a weight above 0",
		`,"layers":2,"weights":[1],"groups":` + group:    "2 of them need a weight above 0",
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

// Pairs of different groups come as often as numpy's choice without replacement has them: p(i)·p(j)/(1−p(i)).
func TestGroupsAreChosenByWeightsAndOnce(t *testing.T) {
	o := &timmPolicy{Groups: make([][]timmOp, 4), Weights: []float64{3, 0, 1, 6}}
	const n = 1 << 10
	var counts [4][4]int
	for i := range uint32(n) {
		for j := range uint32(n) {
			var taken [mostTimmOps]bool
			first := o.chooseGroup(i*(1<<32/n)+1<<31/n, &taken)
			counts[first][o.chooseGroup(j*(1<<32/n)+1<<31/n, &taken)]++
		}
	}
	for i, p := range o.Weights {
		for j, q := range o.Weights {
			want := 0.0
			if i != j && p > 0 {
				want = p / 10 * q / (10 - p)
			}
			if got := float64(counts[i][j]) / (n * n); math.Abs(got-want) > 2.0/n {
				t.Errorf("%d, then %d: %v, want %v", i, j, got, want)
			}
		}
	}
	var taken [mostTimmOps]bool
	for range 3 {
		if o.chooseGroup(math.MaxUint32, &taken) == 1 {
			t.Error("a group of weight 0 was chosen")
		}
	}
}

func unmarshalSteps(t *testing.T, text []byte) (steps []json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	return steps
}
