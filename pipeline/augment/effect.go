package augment

import (
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// An effect is work on a whole picture that is no view. One of its functions is set, a top-level one, so that no sample allocates; all
// it depends on is in the effect.
type effect struct {
	// inPlace changes m.
	inPlace func(e *effect, w *workspace, m *pixel.Image)
	// across reads src and writes all of dst, which has the size that was announced. They do not overlap.
	across func(e *effect, w *workspace, dst, src *pixel.Image)
	// numbers mean what the function says.
	numbers [16]float64
	// dice are for effects that draw while they work: noise.
	dice  dice
	noise *noise // to add
	// steps are the most that a pixel takes, besides usualSteps.
	steps int
}

// usualSteps are what a pixel takes of effects that have little to sum up: some 50 ns at most. A step is a product that is added to a sum.
const usualSteps = 64

func (e *effect) none() bool { return e.inPlace == nil && e.across == nil }

// workspace is memory that effects share, one after the other.
type workspace struct {
	level    string // of kernels
	tables   [3][256]byte
	floats   []float32
	bytes    []byte
	spots    []spot
	points   []point
	tweak    effect
	sums     []float32
	pictures [2]pixel.Image
	jpeg     compression
	// cancelled is set where nobody wants the sample any more; nil: never.
	cancelled *atomic.Bool
}

// stopped is asked now and then by what can take long: what it leaves undone is thrown away.
func (w *workspace) stopped() bool { return w.cancelled != nil && w.cancelled.Load() }
