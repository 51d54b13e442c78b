package transform

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

func TestCanonicalFormOfColourOps(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"ColorJitter"}`: `[{"op":"ColorJitter","brightness":null,"contrast":null,"saturation":null,"hue":null}]`,
		`{"op":"ColorJitter","brightness":0.4,"contrast":1.5,"saturation":[0.5,1],"hue":0.1}`: `[{"op":"ColorJitter","brightness":[0.6,1.4],"contrast":[0,2.5],"saturation":[0.5,1],"hue":[-0.1,0.1]}]`,
		`{"op":"ColorJitter","brightness":0,"contrast":[1,1],"saturation":null,"hue":[0,0]}`:  `[{"op":"ColorJitter","brightness":null,"contrast":null,"saturation":null,"hue":null}]`,
		`{"op":"Grayscale","num_output_channels":3}`:                                          `[{"op":"Grayscale","num_output_channels":3}]`,
		`{"op":"JPEG","quality":50},{"op":"JPEG","quality":[5,95]}`:                           `[{"op":"JPEG","quality":[50,50]},{"op":"JPEG","quality":[5,95]}]`,
		`{"op":"GaussianNoise"},{"op":"GaussianNoise","mean":0.1,"sigma":0,"clip":true}`:      `[{"op":"GaussianNoise","mean":0,"sigma":0.1},{"op":"GaussianNoise","mean":0.1,"sigma":0}]`,
		`{"op":"RandomGrayscale"}`: `[{"op":"RandomGrayscale","p":0.1}]`,
		`{"op":"RandomInvert"},{"op":"RandomEqualize","p":1},{"op":"RandomAutocontrast"}`:                                                                   `[{"op":"RandomInvert","p":0.5},{"op":"RandomEqualize","p":1},{"op":"RandomAutocontrast","p":0.5}]`,
		`{"op":"RandomPhotometricDistort","p":0.25}`:                                                                                                        `[{"op":"RandomPhotometricDistort","brightness":[0.875,1.125],"contrast":[0.5,1.5],"saturation":[0.5,1.5],"hue":[-0.05,0.05],"p":0.25}]`,
		`{"op":"GaussianBlur","kernel_size":5},{"op":"GaussianBlur","kernel_size":[3,7],"sigma":1.5},{"op":"GaussianBlur","kernel_size":[3],"sigma":[1,2]}`: `[{"op":"GaussianBlur","kernel_size":[5,5],"sigma":[0.1,2]},{"op":"GaussianBlur","kernel_size":[3,7],"sigma":[1.5,1.5]},{"op":"GaussianBlur","kernel_size":[3,3],"sigma":[1,2]}]`,
		`{"op":"RandomChannelPermutation"}`:                                                                                                                 `[{"op":"RandomChannelPermutation"}]`,
		`{"op":"RandomPosterize","bits":2,"p":0.2}`:                                                                                                         `[{"op":"RandomPosterize","bits":2,"p":0.2}]`,
		`{"op":"RandomSolarize","threshold":192.5}`:                                                                                                         `[{"op":"RandomSolarize","threshold":192.5,"p":0.5}]`,
		`{"op":"RandomAdjustSharpness","sharpness_factor":2}`:                                                                                               `[{"op":"RandomAdjustSharpness","sharpness_factor":2,"p":0.5}]`,
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

func TestPlanErrorsOfColourOps(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"ColorJitter","brightness":-1}`:                           `transforms[0]: ColorJitter: brightness: must be a number from 0 to 999999, got -1; nearest: 0`,
		`{"op":"ColorJitter","hue":0.6}`:                                 `transforms[0]: ColorJitter: hue: must be a number from 0 to 0.5, got 0.6; nearest: 0.5`,
		`{"op":"ColorJitter","hue":[-0.6,0]}`:                            `transforms[0]: ColorJitter: hue: must be a number from -0.5 to 0.5, got -0.6; nearest: -0.5`,
		`{"op":"ColorJitter","contrast":[2,1]}`:                          `transforms[0]: ColorJitter: contrast: must ascend, got [2,1]; nearest: [1,2]`,
		`{"op":"ColorJitter","saturation":"much"}`:                       `transforms[0]: ColorJitter: saturation: must be a list of two numbers, got "much"; nearest: [1,1]`,
		`{"op":"ColorJitter","satuation":1}`:                             `transforms[0]: ColorJitter: satuation: no such argument; nearest: saturation`,
		`{"op":"GaussianBlur"}`:                                          `transforms[0]: GaussianBlur: kernel_size: is missing; nearest: 23`,
		`{"op":"GaussianBlur","kernel_size":4}`:                          `transforms[0]: GaussianBlur: kernel_size: must be odd and at most 127, got 4; nearest: 5`,
		`{"op":"GaussianBlur","kernel_size":[3,201]}`:                    `transforms[0]: GaussianBlur: kernel_size: must be odd and at most 127, got 201; nearest: 127`,
		`{"op":"GaussianBlur","kernel_size":3,"sigma":0}`:                `transforms[0]: GaussianBlur: sigma: must be a number from 1e-06 to 1000, got 0; nearest: 0.000001`,
		`{"op":"JPEG"}`:                                                  `transforms[0]: JPEG: quality: is missing; nearest: [50,50]`,
		`{"op":"JPEG","quality":[50,101]}`:                               `transforms[0]: JPEG: quality: must be a whole number from 1 to 100, got 101; nearest: 100`,
		`{"op":"JPEG","quality":[50,20]}`:                                `transforms[0]: JPEG: quality: must ascend, got [50,20]; nearest: [20,50]`,
		`{"op":"JPEG","quality":[50]}`:                                   `transforms[0]: JPEG: quality: must be a number, or a list of two, got [50]; nearest: [50,100]`,
		`{"op":"JPEG","quality":"high"}`:                                 `transforms[0]: JPEG: quality: must be a whole number from 1 to 65500, got "high"; nearest: 1`,
		`{"op":"Grayscale"}`:                                             `transforms[0]: Grayscale: num_output_channels: is 1 when left out, and pictures have 3 channels; nearest: 3`,
		`{"op":"Grayscale","num_output_channels":1}`:                     `transforms[0]: Grayscale: num_output_channels: pictures have 3 channels, got 1; nearest: 3`,
		`{"op":"RandomPosterize"}`:                                       `transforms[0]: RandomPosterize: bits: is missing; nearest: 4`,
		`{"op":"RandomPosterize","bits":0}`:                              `transforms[0]: RandomPosterize: bits: must be a number from 1 to 8, got 0; nearest: 1`,
		`{"op":"RandomPosterize","bits":2.5}`:                            `transforms[0]: RandomPosterize: bits: must be a whole number from 1 to 8, got 2.5; nearest: 3`,
		`{"op":"RandomSolarize"}`:                                        `transforms[0]: RandomSolarize: threshold: is missing; nearest: 128`,
		`{"op":"RandomAdjustSharpness","sharpness_factor":-1}`:           `transforms[0]: RandomAdjustSharpness: sharpness_factor: must be a number from 0 to 1e+06, got -1; nearest: 0`,
		`{"op":"RandomAdjustSharpness","sharpness_factor":1,"p":[0.25]}`: `transforms[0]: RandomAdjustSharpness: p: must be a number from 0 to 1, got [0.25]; nearest: 0`,
	} {
		_, err := tryParse(t, plan)
		var p *PlanError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
	}
}

const everyColourOp = `{"op":"ColorJitter","brightness":0.4,"contrast":0.4,"saturation":0.4,"hue":0.1},{"op":"RandomGrayscale"},
	{"op":"RandomInvert"},{"op":"RandomEqualize"},{"op":"RandomAutocontrast"},{"op":"RandomPosterize","bits":4},
	{"op":"RandomSolarize","threshold":128},{"op":"RandomAdjustSharpness","sharpness_factor":1.7},{"op":"RandomPhotometricDistort"},{"op":"RandomChannelPermutation"}`

func TestColourOpsAllocateNothing(t *testing.T) {
	for _, plan := range []string{
		everyColourOp,
		`{"op":"RandomResizedCrop","size":32},` + everyColourOp + `,{"op":"Resize","size":[40,30]},` + everyColourOp,
	} {
		allocatesNothing(t, plan)
	}
}

func TestColourDrawsAreReportedInTorchvisionsWords(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"ColorJitter","brightness":0.4,"saturation":[0.5,1.5],"hue":0.1},
		{"op":"RandomGrayscale","p":1},{"op":"RandomSolarize","threshold":9,"p":0}`), Options{Seed: 17})
	draws, err := rn.Draws(50, 40, order.Sample{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(draws)
	// The numbers pin the recipe: seed 17, sample 1 of epoch 0.
	want := `[{"op":"ColorJitter","applied":true,"parameters":{"fn_idx":[2,1,0,3],"brightness_factor":0.6123762130737305,` +
		`"contrast_factor":null,"saturation_factor":0.8662636280059814,"hue_factor":0.08317822217941284}},` +
		`{"op":"RandomGrayscale","applied":true,"parameters":{"num_input_channels":3}},{"op":"RandomSolarize","applied":false,"parameters":{}}]`
	if string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}
