package transform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/budget"
)

// parse reads a chain of comma-separated JSON objects.
func parse(t *testing.T, plan string) Chain {
	t.Helper()
	c, err := tryParse(t, plan)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryParse(t *testing.T, plan string) (Chain, error) {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte("["+plan+"]"), &raw); err != nil {
		t.Fatal(err)
	}
	return Parse(raw)
}

func TestCanonicalFormHasAllArgumentsInTorchvisionsOrder(t *testing.T) {
	for plan, want := range map[string]string{
		``:                                      `[]`,
		`{"op":"RandomResizedCrop","size":224}`: `[{"op":"RandomResizedCrop","size":[224,224],"scale":[0.08,1],"ratio":[0.75,1.3333333333333333],"interpolation":"bilinear"}]`,
		`{"ratio":[1,2],"interpolation":"bilinear","antialias":true,"scale":[0.5,1.0],"size":[1,2],"op":"RandomResizedCrop"}`: `[{"op":"RandomResizedCrop","size":[1,2],"scale":[0.5,1],"ratio":[1,2],"interpolation":"bilinear"}]`,
		`{"op":"Resize","size":256}`:                                        `[{"op":"Resize","size":256,"interpolation":"bilinear","max_size":null}]`,
		`{"op":"Resize","size":[256],"max_size":300,"antialias":null}`:      `[{"op":"Resize","size":256,"interpolation":"bilinear","max_size":300}]`,
		`{"op":"Resize","size":null,"max_size":300}`:                        `[{"op":"Resize","size":null,"interpolation":"bilinear","max_size":300}]`,
		`{"op":"Resize","size":[8,9]}, {"op":"CenterCrop","size":[7]}`:      `[{"op":"Resize","size":[8,9],"interpolation":"bilinear","max_size":null},{"op":"CenterCrop","size":[7,7]}]`,
		`{"op":"RandomHorizontalFlip"}, {"op":"RandomVerticalFlip","p":1}`:  `[{"op":"RandomHorizontalFlip","p":0.5},{"op":"RandomVerticalFlip","p":1}]`,
		`{"op":"CenterCrop","size":224.0}`:                                  `[{"op":"CenterCrop","size":[224,224]}]`,
		`{"op":"RandomHorizontalFlip","p":0},{"op":"RandomHorizontalFlip"}`: `[{"op":"RandomHorizontalFlip","p":0},{"op":"RandomHorizontalFlip","p":0.5}]`,
	} {
		c := parse(t, plan)
		got, err := json.Marshal(c)
		if err != nil || string(got) != want {
			t.Errorf("%s\n gives %s, %v\n  want %s", plan, got, err, want)
		}
		again, _ := json.Marshal(parse(t, string(got[1:len(got)-1])))
		if string(again) != string(got) {
			t.Errorf("%s is not stable: %s", got, again)
		}
	}
}

func TestPlanErrorsNameOpArgumentAndNearestForm(t *testing.T) {
	offered := strings.Join(slices.Sorted(maps.Keys(ops)), ", ")
	for plan, want := range map[string]string{
		`7`:                                  `transforms[0]: must be an object with a member op; nearest: {"op":"Resize","size":256}`,
		`null`:                               `transforms[0]: must be an object with a member op; nearest: {"op":"Resize","size":256}`,
		`{"size":7}`:                         `transforms[0]: op: must name a transform; nearest: ` + offered,
		`{"op":["a"]}`:                       `transforms[0]: op: must name a transform; nearest: ` + offered,
		`{"op":"resze"}`:                     `transforms[0]: resze: no such transform; nearest: Resize`,
		`{"op":"RandomResizeCrop","size":1}`: `transforms[0]: RandomResizeCrop: no such transform; nearest: RandomResizedCrop`,
		`{"op":"RandomIoUCrop"}`:             `transforms[0]: RandomIoUCrop: not offered yet; nearest: ` + offered,
		`{"op":"Resize","size":8},{"op":"Resize","size":8,"maxsize":9}`:  `transforms[1]: Resize: maxsize: no such argument; nearest: max_size`,
		`{"op":"RandomHorizontalFlip","prob":1}`:                         `transforms[0]: RandomHorizontalFlip: prob: no such argument; nearest: p`,
		`{"op":"RandomHorizontalFlip","p":1.5}`:                          `transforms[0]: RandomHorizontalFlip: p: must be a number from 0 to 1, got 1.5; nearest: 1`,
		`{"op":"RandomHorizontalFlip","p":null}`:                         `transforms[0]: RandomHorizontalFlip: p: must be a number from 0 to 1, got null; nearest: 0`,
		`{"op":"RandomVerticalFlip","p":"a"}`:                            `transforms[0]: RandomVerticalFlip: p: must be a number from 0 to 1, got "a"; nearest: 0`,
		`{"op":"CenterCrop"}`:                                            `transforms[0]: CenterCrop: size: is missing; nearest: 224`,
		`{"op":"CenterCrop","size":0}`:                                   `transforms[0]: CenterCrop: size: must be a whole number from 1 to 65500, got 0; nearest: 1`,
		`{"op":"CenterCrop","size":[9,65501]}`:                           `transforms[0]: CenterCrop: size: must be a whole number from 1 to 65500, got 65501; nearest: 65500`,
		`{"op":"CenterCrop","size":22.4}`:                                `transforms[0]: CenterCrop: size: must be a whole number from 1 to 65500, got 22.4; nearest: 22`,
		`{"op":"CenterCrop","size":true}`:                                `transforms[0]: CenterCrop: size: must be a whole number from 1 to 65500, got true; nearest: 1`,
		`{"op":"CenterCrop","size":[1,2,3]}`:                             `transforms[0]: CenterCrop: size: must be a number, or a list of one or two, got [1,2,3]; nearest: [224,224]`,
		`{"op":"RandomResizedCrop","size":8,"interpolation":"biCubic"}`:  `transforms[0]: RandomResizedCrop: interpolation: no such name, got "biCubic"; nearest: "bicubic"`,
		`{"op":"RandomResizedCrop","size":8,"interpolation":"biliniar"}`: `transforms[0]: RandomResizedCrop: interpolation: no such name, got "biliniar"; nearest: "bilinear"`,
		`{"op":"Resize","size":8,"interpolation":2}`:                     `transforms[0]: Resize: interpolation: must be a name, got 2; nearest: "bilinear"`,
		`{"op":"RandomResizedCrop","size":8,"scale":[0.9,0.1]}`:          `transforms[0]: RandomResizedCrop: scale: must ascend, got [0.9,0.1]; nearest: [0.1,0.9]`,
		`{"op":"RandomResizedCrop","size":8,"scale":[-1,1]}`:             `transforms[0]: RandomResizedCrop: scale: must be a number from 0 to 1000, got -1; nearest: 0`,
		`{"op":"RandomResizedCrop","size":8,"ratio":[0,1]}`:              `transforms[0]: RandomResizedCrop: ratio: must be a number from 1e-06 to 1e+06, got 0; nearest: 0.000001`,
		`{"op":"RandomResizedCrop","size":8,"ratio":0.5}`:                `transforms[0]: RandomResizedCrop: ratio: must be a list of two numbers, got 0.5; nearest: [0.75,1.3333333333333333]`,
		`{"op":"RandomResizedCrop","size":8,"antialias":false}`:          `transforms[0]: RandomResizedCrop: antialias: PIL images are always antialiased, got false; nearest: true`,
		`{"op":"Resize"}`:                                                              `transforms[0]: Resize: size: is missing; nearest: 256`,
		`{"op":"Resize","size":null}`:                                                  `transforms[0]: Resize: size: may be null only with max_size; nearest: 256`,
		`{"op":"Resize","size":[8,9],"max_size":20}`:                                   `transforms[0]: Resize: max_size: goes with a single size or with null; nearest: null`,
		`{"op":"Resize","size":8,"max_size":8}`:                                        `transforms[0]: Resize: max_size: must be greater than size, 8, got 8; nearest: 9`,
		`{"op":"CenterCrop","size":[1,9000]},{"op":"Resize","size":256}`:               `transforms[1]: Resize: makes pictures of 2304000×256 pixels here; a side has 1 to 65500`,
		`{"op":"CenterCrop","size":[1,9000]},{"op":"Resize","size":null,"max_size":8}`: `transforms[1]: Resize: makes pictures of 8×0 pixels here; a side has 1 to 65500`,
	} {
		_, err := tryParse(t, plan)
		var p *PlanError
		if !errors.As(err, &p) || err.Error() != want {
			t.Errorf("%s\n says %v\n want %s", plan, err, want)
		}
	}
	_, err := tryParse(t, `{"op":"Resize","size":8,"max_size":-3}`)
	var p *PlanError
	if !errors.As(err, &p) || p.Field() != "transforms[0].max_size" {
		t.Errorf("%v, field %q", err, p.Field())
	}
	if _, err := tryParse(t, strings.Repeat(`{"op":"RandomVerticalFlip"},`, maxSteps)+`{"op":"RandomVerticalFlip"}`); err == nil {
		t.Error("a chain of any length is taken")
	}
}

// Whatever comes, an error is short and printable, and what is accepted has a canonical form.
func FuzzParse(f *testing.F) {
	f.Add(`{"op":"RandomResizedCrop","size":[224,224],"scale":[0.08,1],"ratio":[0.75,1.3333333333333333],"interpolation":"bilinear"}`)
	f.Add(`{"op":"Resize","size":null,"max_size":300}`)
	f.Add(`{"op":"CenterCrop","size":[1e3]}`)
	f.Add(`{"op":"RandomHorizontalFlip","p":-0}`)
	f.Add(`{"op":"RandomChoice","p":[1,2],"transforms":[{"op":"Identity"},{"op":"ColorJitter","hue":0.1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var c Chain
		var err error
		budget.Hold(t, 1<<20+1000*uint64(len(text)), func() { c, err = Parse([]json.RawMessage{json.RawMessage(text)}) })
		if err != nil {
			if len(err.Error()) > 1000 || strings.ToValidUTF8(err.Error(), "") != err.Error() {
				t.Errorf("%q: error %q", text, err)
			}
			return
		}
		canon, err := c.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var raw []json.RawMessage
		if err := json.Unmarshal(canon, &raw); err != nil {
			t.Fatalf("%q: %s: %v", text, canon, err)
		}
		again, err := Parse(raw)
		if err != nil {
			t.Fatalf("%q: %s: %v", text, canon, err)
		}
		if twice, _ := again.MarshalJSON(); string(twice) != string(canon) {
			t.Errorf("%q: %s, then %s", text, canon, twice)
		}
	})
}

func TestOutputSize(t *testing.T) {
	for plan, want := range map[string]string{
		``: "0 0 false",
		`{"op":"RandomResizedCrop","size":[3,5]}`: "3 5 true",
		`{"op":"Resize","size":256}`:              "0 0 false",
		`{"op":"Resize","size":[3,5]}`:            "3 5 true",
		`{"op":"Resize","size":256},{"op":"RandomVerticalFlip"},{"op":"CenterCrop","size":224},{"op":"RandomHorizontalFlip"}`: "224 224 true",
		`{"op":"CenterCrop","size":[30,50]},{"op":"Resize","size":60}`:                                                        "60 100 true",
		`{"op":"CenterCrop","size":[30,50]},{"op":"Resize","size":60,"max_size":80}`:                                          "48 80 true",
		`{"op":"CenterCrop","size":[50,30]},{"op":"Resize","size":null,"max_size":80}`:                                        "80 48 true",
		`{"op":"RandomHorizontalFlip"}`: "0 0 false",
	} {
		h, w, fixed := parse(t, plan).OutputSize()
		if got := fmt.Sprint(h, w, fixed); got != want {
			t.Errorf("%s: %s, want %s", plan, got, want)
		}
	}
}

func TestInfos(t *testing.T) {
	infos := parse(t, `{"op":"CenterCrop","size":7},{"op":"RandomVerticalFlip"}`).Infos()
	if got, want := fmt.Sprintf("%s", infos), `[{CenterCrop node pil A {"size":[7,7]}} {RandomVerticalFlip node pil A {"p":0.5}}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
