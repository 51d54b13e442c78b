package transform

import (
	"errors"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

func TestBlurRefusesSmallPictures(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"GaussianBlur","kernel_size":[3,23]}`), Options{})
	var o *OpError
	if _, _, err := rn.Begin(50, 11, order.Sample{}); !errors.As(err, &o) {
		t.Errorf("11 rows, 23 taps: %v", err)
	}
	if _, _, err := rn.Begin(2, 12, order.Sample{}); err != nil {
		t.Errorf("12 rows, 23 taps: %v", err)
	}
}

func TestBlurAllocatesNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"GaussianBlur","kernel_size":23},{"op":"Resize","size":[50,60]},{"op":"GaussianBlur","kernel_size":[5,7],"sigma":3}`)
}
