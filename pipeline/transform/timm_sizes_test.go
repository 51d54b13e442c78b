package transform

import (
	"encoding/json"
	"image"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

const timmSizesPlan = `{"op":"TimmTrim","border_size":2},{"op":"TimmResize","size":[20,14],"random_scale_prob":0.5,"random_aspect_prob":0.5},
	{"op":"TimmCrop","size":24,"random":true,"padding_mode":"reflect"}`

func TestTimmSizesAllocateNothing(t *testing.T) { allocatesNothing(t, timmSizesPlan) }

func TestReplayShowsTheSizesOfTimm(t *testing.T) {
	tells(t, timmSizesPlan, 100, 80, `[{"op":"TimmTrim","applied":true,"parameters":{}},{"op":"TimmResize","applied":true,"parameters":{"size":[20,25]}},{"op":"TimmCrop","applied":true,"parameters":{"top":0,"left":1}}]`)
}

// timm's own results of a picture of 100×80: height and width.
func TestTimmResizeWithoutChance(t *testing.T) {
	for plan, want := range map[string]image.Point{
		`"size":20`:                      {25, 20},
		`"size":20,"longest":1`:          {20, 16},
		`"size":[30,14],"longest":0.25`:  {26, 21},
		`"size":[14,30],"longest":0.333`: {24, 19},
		`"size":33,"longest":0.5`:        {37, 29},
	} {
		rn := newRunner(t, parse(t, `{"op":"TimmResize",`+plan+`}`), Options{})
		w, h, err := rn.Begin(100, 80, order.Sample{})
		if got := image.Pt(w, h); err != nil || got != want {
			t.Errorf("%s: %v, not %v (%v)", plan, got, want, err)
		}
	}
}

func TestPlansOfTimmSizes(t *testing.T) {
	for plan, want := range map[string]string{
		`{"op":"TimmResize"}`:                                      "size",
		`{"op":"TimmResize","size":8,"longest":2}`:                 "longest: must be a number from 0 to 1",
		`{"op":"TimmResize","size":8,"random_scale_prob":-1}`:      "random_scale_prob",
		`{"op":"TimmResize","size":8,"random_scale_range":[0,1]}`:  "random_scale_range",
		`{"op":"TimmResize","size":8,"random_aspect_range":[2,1]}`: "random_aspect_range",
		`{"op":"TimmResize","size":8,"interpolation":"x"}`:         "interpolation",
		`{"op":"TimmResize","size":8,"random_scale_area":1}`:       "random_scale_area",
		`{"op":"TimmCrop"}`:                                        "size",
		`{"op":"TimmCrop","size":8,"random":2}`:                    "random",
		`{"op":"TimmCrop","size":8,"padding_mode":"wrap"}`:         "padding_mode",
		`{"op":"TimmTrim"}`:                                        "border_size",
		`{"op":"TimmTrim","border_size":-2}`:                       "border_size",
		`{"op":"TimmTrim","border_size":2,"dialect":"tensor"}`:     "dialect",
	} {
		if _, err := tryParse(t, plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", plan, err)
		}
	}
	text, _ := json.Marshal(parse(t, timmSizesPlan))
	again, err := Parse(unmarshalSteps(t, text))
	if second, _ := json.Marshal(again); err != nil || string(second) != string(text) {
		t.Errorf("%v: %s and %s", err, text, second)
	}
	if _, err := newRunner(t, parse(t, `{"op":"TimmTrim","border_size":40}`), Options{}).Draws(100, 80, order.Sample{}); err == nil || !strings.Contains(err.Error(), "leaves nothing of a picture of 100×80") {
		t.Error(err)
	}
}
