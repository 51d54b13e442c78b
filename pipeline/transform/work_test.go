package transform

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/order"
)

// What a sample's ops could take at worst is bounded; which op is too much is said before anything is decoded, whatever
// the epoch.
func TestWorkIsBounded(t *testing.T) {
	elastic := `{"op":"ElasticTransform"}`
	for _, c := range []struct {
		plan    string
		w, h    int
		refused string // the op
	}{
		{`{"op":"ElasticTransform","alpha":[20000,20000],"sigma":[31,31]},{"op":"Resize","size":[8,8]}`, 8192, 8192, "ElasticTransform"},
		{`{"op":"ElasticTransform","sigma":[31,31]}`, 2000, 2000, ""},
		{`{"op":"AugMix","mixture_width":32,"chain_depth":32}`, 8192, 8192, "AugMix"},
		{`{"op":"AugMix","mixture_width":32,"chain_depth":32}`, 2500, 2500, ""},
		{`{"op":"GaussianBlur","kernel_size":127}`, 8192, 8192, "GaussianBlur"},
		{`{"op":"GaussianBlur","kernel_size":127}`, 1270, 1270, ""},
		{elastic + `,` + elastic, 8192, 8192, ""},
		{elastic + `,` + elastic + `,` + elastic, 8192, 8192, "ElasticTransform"},
		{elastic + `,` + elastic + strings.Repeat(`,{"op":"RandomInvert","p":1}`, 90), 8192, 8192, "RandomInvert"},
		{strings.Repeat(`{"op":"RandomInvert","p":1},`, 99) + `{"op":"RandomGrayscale"}`, 8192, 8192, ""},
		{elastic + `,{"op":"GaussianBlur","kernel_size":[5,9]},{"op":"AugMix"},{"op":"JPEG","quality":50},{"op":"GaussianNoise"},{"op":"RandomPerspective"}`, 8192, 8192, ""},
		{`{"op":"GaussianBlur","kernel_size":23}`, 8192, 8192, ""},
	} {
		r := newRunner(t, parse(t, c.plan), Options{})
		for epoch := range uint32(3) {
			_, _, err := r.Begin(c.w, c.h, order.Sample{Epoch: epoch})
			var op *OpError
			switch {
			case c.refused == "" && err != nil, c.refused != "" && (!errors.As(err, &op) || op.Op != c.refused):
				t.Errorf("%.99s, %d×%d: %v, want %q refused", c.plan, c.w, c.h, err, c.refused)
			case err != nil && epoch == 0:
				t.Log(err)
			}
		}
		if _, _, err := r.Begin(256, 256, order.Sample{}); err != nil {
			t.Errorf("%.99s, after it: %v", c.plan, err)
		}
	}
}
