package transform

import (
	"errors"
	"image"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/raster"
)

// Ops that can take long leave off at the next row, or the next op inside them, once the sample is given up.
func TestEffectsLeaveOff(t *testing.T) {
	const side = 40
	elastic := raster.Displace([2]float64{50, 50}, [2]float64{2, 2}, raster.Sampling{}, raster.RNG{})
	mix := raster.Effect{Across: mixChains, Op: &augMix{Severity: 3, mixture: mixture{3, 2, 1}, AllOps: true, Interpolation: "bilinear"}}
	src := &pixel.Image{}
	src.Reset(side, side)
	for i := range src.Pix {
		src.Pix[i] = byte(200 + i%7)
	}
	timm := raster.Effect{Across: mixTimmChains, Op: &timmMix{Ops: []timmOp{{"ShearX", 1, 3}}, mixture: mixture{1, 1, 1}, Blended: true,
		timmSpace: timmSpace{Std: new(float64), Most: 10, Filter: []string{"bilinear"}}}}
	summed := timm
	of := *timm.Op.(*timmMix) //nolint:forcetypeassert // as above
	of.Blended = false
	summed.Op = &of
	effects := map[string]raster.Effect{"elastic": elastic, "blur": raster.GaussianBlur(5, 5, 1), "AugMix": mix, "TimmMix": timm, "TimmMix summed": summed}
	for name, e := range effects {
		var cancelled atomic.Bool
		w := &raster.Workspace{Level: kernel.Scalar, Cancelled: &cancelled}
		for _, given := range []bool{false, true} {
			cancelled.Store(given)
			dst := &pixel.Image{}
			dst.Reset(side, side)
			w.Pictures[0].Reset(side, side)
			clear(w.Pictures[0].Pix)
			w.Sums = make([]float32, 3*side*side)
			e.Across(&e, w, dst, src)
			made := dst
			if e.Op != nil {
				made = &w.Pictures[0] // what its chains make
			}
			if given && slices.ContainsFunc(w.Sums, func(v float32) bool { return v != 0 }) {
				t.Errorf("%s goes on to add up when it is given up", name)
			}
			if n := written(made); given != (n == 0) {
				t.Errorf("%s, given up: %v, wrote %d of %d values", name, given, n, 3*side*side)
			}
		}
	}
}

// written is how many of a picture's values are not 0.
func written(m *pixel.Image) (n int) {
	for y := range m.H {
		for _, v := range m.Row(y) {
			if v != 0 {
				n++
			}
		}
	}
	return n
}

// givesUp is a black picture during whose decoding the sample is given up.
type givesUp struct{ cancelled *atomic.Bool }

func (g givesUp) Decode(r image.Rectangle, sink pixel.Sink) error {
	g.cancelled.Store(true)
	row := make([]byte, 3*r.Dx()+pixel.Pad)
	for range r.Dy() {
		sink.Rows(row, 0, 1)
	}
	return nil
}

// A Runner does not begin another pass for a sample that is given up, and makes the next sample whole.
func TestRunUnless(t *testing.T) {
	r := newRunner(t, parse(t, `{"op":"RandomInvert","p":1}`), Options{})
	dst := make([]byte, 3*8*8)
	var cancelled atomic.Bool
	for _, c := range []struct {
		cancelled *atomic.Bool
		err       error
		value     byte
	}{{&cancelled, ErrStopped, 0}, {nil, nil, 255}} {
		if _, _, err := r.Begin(8, 8, order.Sample{}); err != nil {
			t.Fatal(err)
		}
		if err := r.RunUnless(c.cancelled, givesUp{&cancelled}, dst, 3*8); !errors.Is(err, c.err) || dst[0] != c.value {
			t.Errorf("%v, made %d; want %v, %d", err, dst[0], c.err, c.value)
		}
	}
}
