package transform

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

func TestCanonicalFormOfContainers(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"RandomApply","p":0.3,"transforms":[{"op":"RandomInvert"},{"op":"CenterCrop","size":7}]}`: `[{"op":"RandomApply","transforms":[{"op":"RandomInvert","p":0.5},{"op":"CenterCrop","size":[7,7]}],"p":0.3}]`,
		`{"op":"RandomChoice","transforms":[{"op":"Identity"},{"op":"RandomInvert"}]}`:                   `[{"op":"RandomChoice","transforms":[{"op":"Identity"},{"op":"RandomInvert","p":0.5}],"p":null}]`,
		`{"op":"RandomChoice","p":[1,3],"transforms":[{"op":"Identity"},{"op":"Identity"}]}`:             `[{"op":"RandomChoice","transforms":[{"op":"Identity"},{"op":"Identity"}],"p":[1,3]}]`,
		`{"op":"RandomOrder","transforms":[{"op":"Compose","transforms":[{"op":"RandomEqualize"}]}]}`:    `[{"op":"RandomOrder","transforms":[{"op":"Compose","transforms":[{"op":"RandomEqualize","p":0.5}]}]}]`,
	} {
		got, err := json.Marshal(parse(t, plan))
		if err != nil || string(got) != want {
			t.Errorf("%s\n gives %s, %v\n  want %s", plan, got, err, want)
		}
		again, _ := json.Marshal(parse(t, string(got[1:len(got)-1])))
		if string(again) != string(got) {
			t.Errorf("%s is not stable: %s", got, again)
		}
	}
}

func nested(depth int) string {
	return strings.Repeat(`{"op":"Compose","transforms":[`, depth) + `{"op":"Identity"}` + strings.Repeat(`]}`, depth)
}

func TestPlanErrorsInsideContainersNameThePlace(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"RandomApply"}`:                                `transforms[0]: RandomApply: transforms: is missing; nearest: [{"op":"RandomHorizontalFlip"}]`,
		`{"op":"RandomApply","transforms":[]}`:                `transforms[0]: RandomApply: transforms: must be a list of one or more transforms, got []; nearest: [{"op":"RandomHorizontalFlip"}]`,
		`{"op":"RandomApply","transforms":{"op":"Identity"}}`: `transforms[0]: RandomApply: transforms: must be a list of one or more transforms, got {"op":"Identity"}; nearest: [{"op":"RandomHorizontalFlip"}]`,
		`{"op":"Identity"},{"op":"RandomApply","transforms":[{"op":"Identity"},{"op":"RandomInver"}]}`:    `transforms[1]: RandomApply: transforms[1]: RandomInver: no such transform; nearest: RandomInvert`,
		`{"op":"RandomApply","transforms":[{"op":"RandomOrder","transforms":[{"op":"Resize"}]}],"p":2}`:   `transforms[0]: RandomApply: transforms[0].transforms[0].size: RandomOrder: Resize: is missing; nearest: 256`,
		`{"op":"RandomChoice","transforms":[{"op":"Identity"}],"p":[1,2]}`:                                `transforms[0]: RandomChoice: p: must be a list of 1 numbers, one for each transform, got [1,2]; nearest: null`,
		`{"op":"RandomChoice","transforms":[{"op":"Identity"}],"p":[0]}`:                                  `transforms[0]: RandomChoice: p: must not be all 0; nearest: null`,
		`{"op":"RandomChoice","transforms":[{"op":"Identity"}],"p":[-1]}`:                                 `transforms[0]: RandomChoice: p: must be a number from 0 to 1e+06, got -1; nearest: 0`,
		`{"op":"RandomApply","transforms":[` + strings.Repeat(`{"op":"Identity"},`, 100) + `{"op":"a"}]}`: `transforms[0]: RandomApply: transforms: must be at most 100; nearest: [{"op":"RandomHorizontalFlip"}]`,
		nested(maxDepth): ``,
	} {
		_, err := tryParse(t, plan)
		if want == "" && err == nil {
			continue
		}
		var p *PlanError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
	}
	_, err := tryParse(t, nested(maxDepth+1))
	var p *PlanError
	if !errors.As(err, &p) || !strings.Contains(p.Error(), "nested more than 8 deep") || !strings.HasPrefix(p.Field(), "transforms[0].transforms[0]") {
		t.Errorf("nesting of any depth: %v", err)
	}
}

func TestOutputSizeOfContainers(t *testing.T) {
	crop, other, flip := `{"op":"CenterCrop","size":[3,5]}`, `{"op":"CenterCrop","size":4}`, `{"op":"RandomInvert"}`
	apply := func(p float64, inside string) string {
		return fmt.Sprintf(`{"op":"RandomApply","p":%v,"transforms":[%s]}`, p, inside)
	}
	choice := func(inside string) string { return `{"op":"RandomChoice","transforms":[` + inside + `]}` }
	shuffled := func(inside string) string { return `{"op":"RandomOrder","transforms":[` + inside + `]}` }
	for plan, want := range map[string]string{
		apply(0.5, crop):                                             "0 0 false",
		apply(1, crop):                                               "3 5 true",
		crop + "," + apply(0.5, flip):                                "3 5 true",
		crop + "," + apply(0.5, crop+","+crop):                       "3 5 true",
		crop + "," + apply(0.5, other):                               "0 0 false",
		crop + "," + apply(0, other):                                 "3 5 true",
		choice(crop + "," + crop):                                    "3 5 true",
		choice(crop + "," + other):                                   "0 0 false",
		choice(crop + `,{"op":"Identity"}`):                          "0 0 false",
		crop + "," + choice(flip+","+crop):                           "3 5 true",
		shuffled(flip + "," + crop + "," + flip):                     "3 5 true",
		shuffled(flip + "," + flip):                                  "0 0 false",
		shuffled(crop + "," + other):                                 "0 0 false",
		other + "," + shuffled(crop+","+other):                       "0 0 false", // other keeps 4×4, but not 3×5
		`{"op":"Compose","transforms":[` + other + "," + crop + `]}`: "3 5 true",
	} {
		h, w, fixed := parse(t, plan).OutputSize()
		if got := fmt.Sprint(h, w, fixed); got != want {
			t.Errorf("%s: %s, want %s", plan, got, want)
		}
	}
}

const containers = `{"op":"RandomApply","p":0.6,"transforms":[` + everyColourOp + `,{"op":"RandomOrder","transforms":[` + everyColourOp + `]}]},
	{"op":"RandomChoice","p":[1,2,1],"transforms":[{"op":"Identity"},{"op":"RandomHorizontalFlip"},{"op":"Compose","transforms":[{"op":"RandomInvert"},{"op":"CenterCrop","size":50}]}]}`

func TestContainersAllocateNothing(t *testing.T) { allocatesNothing(t, containers) }

// Ops inside have draws of their own, and they do not move when others come or go.
func TestDrawsInsideContainersHaveTheirOwnPath(t *testing.T) {
	jitter := `{"op":"ColorJitter","brightness":0.5}`
	all := func(plan string) string {
		d, err := newRunner(t, parse(t, plan), Options{Seed: 4}).Draws(50, 40, order.Sample{Index: 3})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(d)
		return string(text)
	}
	brightness := func(plan string) (found []string) {
		for _, part := range strings.Split(all(plan), `"brightness_factor":`)[1:] {
			found = append(found, strings.SplitN(part, ",", 2)[0])
		}
		return found
	}
	outside := brightness(jitter)[0]
	apply := `{"op":"RandomApply","p":1,"transforms":[%s]}`
	inside := brightness(fmt.Sprintf(apply, jitter))[0]
	twice := brightness(fmt.Sprintf(apply, `{"op":"RandomInvert"},`+jitter+`,`+jitter))
	behind := brightness(jitter + `,` + fmt.Sprintf(apply, `{"op":"RandomInvert"}`) + `,` + fmt.Sprintf(apply, jitter))
	if twice[0] != inside || behind[0] != outside {
		t.Errorf("draws move: %s, %v; %s, %v", inside, twice, outside, behind)
	}
	seen := map[string]bool{outside: true, inside: true, twice[1]: true, behind[1]: true}
	if len(seen) != 4 {
		t.Errorf("draws repeat: %v", seen)
	}
	deeper := brightness(fmt.Sprintf(apply, fmt.Sprintf(apply, jitter)))[0]
	for path, got := range map[string]string{"RandomApply/0/ColorJitter/0": inside, "RandomApply/0/RandomApply/0/ColorJitter/0": deeper} {
		direct := order.NewKey(4, path).Block(order.Sample{Index: 3}, 1)[0]
		if want := fmt.Sprint(float64(order.Uniform(direct, 0.5, 1.5))); got != want {
			t.Errorf("%s draws %s, want %s", path, got, want)
		}
	}
}

func TestReplayShowsWhatRanInside(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomApply","p":0,"transforms":[{"op":"Identity"}]},
		{"op":"RandomChoice","p":[0,1,0],"transforms":[{"op":"Identity"},{"op":"RandomGrayscale","p":1},{"op":"Identity"}]},
		{"op":"RandomApply","p":1,"transforms":[{"op":"RandomInvert","p":0},{"op":"CenterCrop","size":9}]}`), Options{})
	draws, err := rn.Draws(50, 40, order.Sample{})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(draws)
	want := `[{"op":"RandomApply","applied":false,"parameters":{"transforms":[]}},` +
		`{"op":"RandomChoice","applied":true,"parameters":{"index":1,"transforms":[{"op":"RandomGrayscale","applied":true,"num_input_channels":3}]}},` +
		`{"op":"RandomApply","applied":true,"parameters":{"transforms":[{"op":"RandomInvert","applied":false},{"op":"CenterCrop","applied":true}]}}]`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTierOfContainersIsTheWorstInside(t *testing.T) {
	noise := `{"op":"Compose","transforms":[{"op":"RandomInvert"},{"op":"GaussianNoise"}]}`
	got := ""
	for _, info := range parse(t, `{"op":"RandomInvert"},{"op":"GaussianNoise"},{"op":"RandomApply","transforms":[{"op":"RandomInvert"}]},
		{"op":"RandomApply","transforms":[`+noise+`]}`).Infos() {
		got += info.Tier
	}
	if got != "ACAC" {
		t.Errorf("tiers %s, want ACAC", got)
	}
}

// chiSquare is how far counts are from expected ones.
func chiSquare(counts map[string]int, expected map[string]float64) float64 {
	x := 0.0
	for name, want := range expected {
		x += (float64(counts[name]) - want) * (float64(counts[name]) - want) / want
	}
	return x
}

func TestChoicesComeByWeightAndOrdersEvenly(t *testing.T) {
	const n = 20_000
	weights := parse(t, `{"op":"RandomChoice","p":[1,0,5,2],"transforms":[{"op":"Identity"},{"op":"Identity"},{"op":"Identity"},{"op":"Identity"}]}`)
	choice := weights.steps[0].op.(*randomChoice)
	chosen, orders := map[string]int{}, map[string]int{}
	key := order.NewKey(7, "x/0")
	for i := range uint32(n) {
		d := rng{RNG: raster.RNG{Key: key, Sample: order.Sample{Index: i}}}
		chosen[fmt.Sprint(choice.chooseOp(d.Block(0)[0]))]++
		var s [4]uint8
		d.shuffleIndices(s[:])
		orders[fmt.Sprint(s)]++
	}
	if chosen["1"] != 0 || choice.chooseOp(math.MaxUint32) != 3 || choice.chooseOp(0) != 0 || choice.chooseOp(1<<29) != 2 {
		t.Error("a weight of 0 is chosen, or an end is not")
	}
	// p = 0.001 is 13.8 for two degrees of freedom, 49.7 for 23.
	if x := chiSquare(chosen, map[string]float64{"0": n / 8.0, "2": n * 5 / 8.0, "3": n / 4.0}); x > 13.8 {
		t.Errorf("choices %v: chi-square %.1f", chosen, x)
	}
	even := map[string]float64{}
	for name := range orders {
		even[name] = n / 24.0
	}
	if x := chiSquare(orders, even); len(orders) != 24 || x > 49.7 {
		t.Errorf("%d orders, chi-square %.1f", len(orders), x)
	}
	var many [maxSteps]uint8
	rng{RNG: raster.RNG{Key: key}}.shuffleIndices(many[:])
	seen := map[uint8]bool{}
	for _, i := range many {
		seen[i] = true
	}
	if len(seen) != maxSteps {
		t.Errorf("a shuffle of %d has %d", maxSteps, len(seen))
	}
}
