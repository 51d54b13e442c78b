package transform

import (
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

func TestElasticAllocatesNothing(t *testing.T) {
	allocatesNothing(t, `{"op":"ElasticTransform","sigma":[0.5,1]}`)
	allocatesNothing(t, `{"op":"ElasticTransform","interpolation":"nearest","sigma":[1,2]}`)
}

func TestNoiseTooCoarseForAPictureIsTheSamplesFault(t *testing.T) {
	rn := newRunner(t, parse(t, `{"op":"ElasticTransform"}`), Options{})
	if _, _, err := rn.Begin(20, 60, order.Sample{}); err == nil {
		t.Error("41 taps fit 20 pixels")
	}
	if _, _, err := rn.Begin(21, 60, order.Sample{}); err != nil {
		t.Error(err)
	}
}
