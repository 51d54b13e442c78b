package augment

import (
	"image"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// What torchvision's least squares give. Where a coefficient is 0, theirs is some 10⁻¹⁵ instead.
func TestPerspectiveIsTorchvisions(t *testing.T) {
	for _, v := range []struct {
		start, end [4][2]float64
		want       matrix
	}{
		{
			[4][2]float64{{0, 0}, {499, 0}, {499, 374}, {0, 374}},
			[4][2]float64{{34, 72}, {483, 32}, {469, 311}, {115, 314}},
			matrix{1.1704421043395996, -0.3917595148086548, -11.588343620300293, 0.09988714754581451, 1.1212332248687744, -84.12495422363281, 0.000234120394452475, -0.0008910403703339398},
		},
		{
			[4][2]float64{{0, 0}, {223, 0}, {223, 223}, {0, 223}},
			[4][2]float64{{48, 26}, {211, 62}, {220, 174}, {55, 223}},
			matrix{0.7097660303115845, -0.02522011287510395, -33.41304397583008, -0.2375919222831726, 1.075763463973999, -16.56543731689453, -0.002398428739979863, 0.0003353975189384073},
		},
		{
			[4][2]float64{{0, 0}, {32, 0}, {32, 30}, {0, 30}},
			[4][2]float64{{7, 4}, {29, 9}, {31, 25}, {0, 30}},
			matrix{0.8352156281471252, 0.22486574947834015, -6.745972156524658, -0.33946484327316284, 1.4936453104019165, -3.598327398300171, -0.01733670011162758, 0.012456702999770641},
		},
	} {
		if got, err := perspective(&v.end, &v.start); err != nil || got != v.want {
			t.Errorf("%v to %v: %v, %v, want %v", v.end, v.start, got, err, v.want)
		}
	}
}

// No perspective spreads a line; torchvision raises or makes noise of it.
func TestPerspectiveOfALineIsTheSamplesFault(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"RandomPerspective","p":1}`), Options{})
	for _, size := range []image.Point{{1, 50}, {50, 1}, {1, 1}} {
		if _, _, err := rn.Begin(size.X, size.Y, order.Sample{}); err == nil {
			t.Errorf("%v has a perspective", size)
		}
	}
}

func TestPerspectivesAllocateNothing(t *testing.T) {
	for _, name := range []string{"nearest", "bilinear", "bicubic"} {
		plan := `{"op":"RandomPerspective","interpolation":"` + name + `"}`
		allocatesNothing(t, plan)
	}
}
