package admission_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/server/admission"
)

// Whatever the size of pieces: after the first second's worth no byte goes sooner than the rate says.
func TestBytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 5
		for _, rate := range []float64{50_000, 1 << 20, 10 << 20, 3 << 20 / 2} {
			for _, bytes := range []int{1, 30_000, 1 << 20, 4<<20 + 1} {
				waits := admission.Affords(admission.Rule{BytesPerSecond: rate}, pieces, bytes)
				want := max(0, float64(pieces*bytes)/rate-1)
				if got := waits[pieces-1].Seconds(); math.Abs(got-want) > 1e-3 {
					t.Errorf("%d pieces of %d bytes at %.0f a second: the last waits %g s, want %g", pieces, bytes, rate, got, want)
				}
			}
		}
		if waits := admission.Affords(admission.Rule{}, pieces, 1<<30); waits[pieces-1] != time.Duration(0) {
			t.Errorf("without a limit: %v", waits)
		}
	})
}
