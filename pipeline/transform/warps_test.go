package transform

import (
	"strings"
	"testing"
)

func TestWarpsAllocateNothing(t *testing.T) {
	for _, plan := range []string{
		`{"op":"RandomRotation","degrees":180,"expand":true,"fill":3},{"op":"RandomRotation","degrees":[90,90],"expand":true}`,
		`{"op":"RandomAffine","degrees":30,"translate":[0.1,0.2],"scale":[0.5,2],"shear":[-9,9,-8,8],"interpolation":"bilinear"}`,
		`{"op":"RandomAffine","degrees":30,"interpolation":"bicubic"},{"op":"RandomAffine","degrees":0,"translate":[0.5,0.5],"center":[1,2]}`,
	} {
		allocatesNothing(t, plan)
	}
}

func TestWarpArguments(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"RandomRotation","degrees":30}`: `[{"op":"RandomRotation","degrees":[-30,30],"interpolation":"nearest","expand":false,"center":null,"fill":[0,0,0]}]`,
		`{"op":"RandomRotation","degrees":[0,90],"expand":true,"center":[1,2],"fill":[3],"interpolation":"bicubic"}`: `[{"op":"RandomRotation","degrees":[0,90],"interpolation":"bicubic","expand":true,"center":[1,2],"fill":[3,3,3]}]`,
		`{"op":"RandomAffine","degrees":0}`: `[{"op":"RandomAffine","degrees":[0,0],"translate":null,"scale":null,"shear":null,"interpolation":"nearest","fill":[0,0,0],"center":null}]`,
		`{"op":"RandomAffine","degrees":[1,2],"translate":[0,1],"scale":[0.5,2],"shear":[1,2],"fill":null}`: `[{"op":"RandomAffine","degrees":[1,2],"translate":[0,1],"scale":[0.5,2],"shear":[1,2],"interpolation":"nearest","fill":null,"center":null}]`,
	} {
		if got, _ := parse(t, plan).MarshalJSON(); string(got) != want {
			t.Errorf("%s\n gives %s\n  want %s", plan, got, want)
		}
	}
	for plan, want := range map[string]string{
		`{"op":"RandomRotation"}`:                                         `degrees: is missing; nearest: [-30,30]`,
		`{"op":"RandomRotation","degrees":-1}`:                            `degrees: must be a number from 0 to 1e+06, got -1; nearest: 0`,
		`{"op":"RandomRotation","degrees":[1,2,3]}`:                       `degrees: must be a number, or a list of two, got [1,2,3]; nearest: [-30,30]`,
		`{"op":"RandomRotation","degrees":1,"interpolation":"lanczos"}`:   `interpolation: no such filter for warps, got "lanczos"; nearest: "nearest"`,
		`{"op":"RandomRotation","degrees":1,"interpolation":null}`:        `interpolation: must be a name, got null; nearest: "nearest"`,
		`{"op":"RandomRotation","degrees":1,"fill":[1,2]}`:                `fill: must be a number, or a list of three, got [1,2]; nearest: [0,0,0]`,
		`{"op":"RandomRotation","degrees":1,"fill":256}`:                  `fill: must be a number from 0 to 255, got 256; nearest: 255`,
		`{"op":"RandomRotation","degrees":1,"expand":1}`:                  `expand: must be true or false, got 1; nearest: false`,
		`{"op":"RandomRotation","degrees":1,"center":[1]}`:                `center: must be a list of 2 numbers, got [1]; nearest: [0,0]`,
		`{"op":"RandomAffine","degrees":1,"shear":[1]}`:                   `shear: must be a list of 2 or 4 numbers, got [1]; nearest: [0,0]`,
		`{"op":"RandomAffine","degrees":1,"scale":[0,1]}`:                 `scale: must be a number from 1e-06 to 1e+06, got 0; nearest: 0.000001`,
		`{"op":"RandomAffine","degrees":1,"translate":[0,2]}`:             `translate: must be a number from 0 to 1, got 2; nearest: 1`,
		`{"op":"RandomAffine","degrees":1,"translate":[0,0],"scale":[1]}`: `scale: must be a list of 2 numbers, got [1]; nearest: [0,0]`,
	} {
		_, err := tryParse(t, plan)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s\n says %v\n want … %s", plan, err, want)
		}
	}
}
