package transform

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// onTensors are ops in the dialect of tensors.
var onTensors = []string{
	`{"op":"ColorJitter","brightness":0.4,"contrast":0.4,"saturation":0.4,"hue":0.1,"dialect":"tensor"}`,
	`{"op":"RandomPhotometricDistort","dialect":"tensor"}`,
	`{"op":"Grayscale","num_output_channels":3,"dialect":"tensor"}`,
	`{"op":"RandomGrayscale","dialect":"tensor"}`,
	`{"op":"RandomSolarize","threshold":128,"dialect":"tensor"}`,
	`{"op":"RandomAutocontrast","dialect":"tensor"}`,
	`{"op":"RandomAdjustSharpness","sharpness_factor":2,"dialect":"tensor"}`,
	`{"op":"RandomRotation","degrees":180,"dialect":"tensor"}`,
	`{"op":"RandomAffine","degrees":30,"shear":[-9,9],"interpolation":"bilinear","dialect":"tensor"}`,
	`{"op":"RandomPerspective","dialect":"tensor"}`,
}

func TestOpsOnTensorsAllocateNothing(t *testing.T) {
	for _, plan := range onTensors {
		allocatesNothing(t, plan)
	}
}

// Both dialects draw alike: where ToImage stands moves no crop and no factor.
func TestDialectsDrawAlike(t *testing.T) {
	for _, plan := range onTensors {
		for i := range uint32(20) {
			s := order.Sample{Index: i}
			tensor, err := newRunner(t, parse(t, plan), Options{}).Draws(90, 60, s)
			if err != nil {
				t.Fatal(err)
			}
			pil, err := newRunner(t, parse(t, strings.Replace(plan, `,"dialect":"tensor"`, "", 1)), Options{}).Draws(90, 60, s)
			if err != nil || string(tensor[0].Parameters) != string(pil[0].Parameters) || tensor[0].Applied != pil[0].Applied {
				t.Fatalf("%s: %s on a tensor, %s, %v", plan, tensor[0].Parameters, pil[0].Parameters, err)
			}
		}
	}
}

func TestTensorsHaveNoBicubicWarps(t *testing.T) {
	for _, name := range []string{"RandomRotation", "RandomAffine", "RandomPerspective"} {
		plan := `{"op":"` + name + `","degrees":9,"interpolation":"bicubic","dialect":"tensor"}`
		if name == "RandomPerspective" {
			plan = strings.Replace(plan, `"degrees":9,`, "", 1)
		}
		if _, err := Parse([]json.RawMessage{json.RawMessage(plan)}); err == nil || !strings.Contains(err.Error(), "no bicubic warps") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
