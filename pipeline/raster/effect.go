// Package raster changes the pixels of decoded pictures, as Pillow or torchvision's functions on tensors do to the last
// bit: colours, warps, blur, noise, JPEG. Effects carry all that they depend on; the package reads no plan, draws no
// parameters, and starts no goroutine.
package raster

import (
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
)

// An RNG has the random words of one op for one sample.
type RNG struct {
	Key    order.Key
	Sample order.Sample
}

// Block returns four words, the same ones for the same i.
func (g RNG) Block(i uint32) [4]uint32 { return g.Key.Block(g.Sample, i) }

// An Effect is work on a whole picture. One of its functions is set, a top-level one, so that no sample allocates; all
// it depends on is in the effect.
type Effect struct {
	// InPlace changes m.
	InPlace func(e *Effect, w *Workspace, m *pixel.Image)
	// Across reads src and writes all of dst, which has the size that was announced. They do not overlap.
	Across func(e *Effect, w *Workspace, dst, src *pixel.Image)
	// Numbers mean what the function says.
	Numbers [16]float64
	// RNG is for effects that draw while they work: noise.
	RNG RNG
	// Noise to add.
	Noise *Noise
	// Op is the op of an effect that is made of others, which reads it. Nobody changes it.
	Op any
	// Steps are the most that a pixel takes, besides UsualSteps.
	Steps int
}

// UsualSteps are what a pixel takes of effects that have little to sum up: some 50 ns at most. A step is a product that
// is added to a sum.
const UsualSteps = 64

// IsNone reports whether the effect does nothing.
func (e *Effect) IsNone() bool { return e.InPlace == nil && e.Across == nil }

// Workspace is memory that effects share, one after the other. It serves one goroutine at a time.
type Workspace struct {
	// Level of the kernels, one of kernel.Levels.
	Level string
	// Cancelled is set where nobody wants the sample any more; nil: never.
	Cancelled *atomic.Bool
	// Inner, Sums and Pictures are for effects that are made of others.
	Inner    Effect
	Sums     []float32
	Pictures [2]pixel.Image

	tables [3][256]byte
	parts  [3][256]byte // of the tables, for kernels
	floats []float32
	bytes  []byte
	spots  []sourcePoint64
	points []sourcePoint32
	jpeg   jpegPlanes
	blur   vectorConvolution
}

// IsStopped is asked now and then by what can take long: what it leaves undone is thrown away.
func (w *Workspace) IsStopped() bool { return w.Cancelled != nil && w.Cancelled.Load() }

// Shrink gives back the buffers that take more than so many bytes, as those of a huge picture do.
func (w *Workspace) Shrink(most int) {
	if 4*cap(w.floats)+cap(w.bytes) > most {
		w.floats, w.bytes = nil, nil
	}
	if 4*cap(w.Sums) > most {
		w.Sums = nil
	}
	for i := range w.Pictures {
		if cap(w.Pictures[i].Pix) > most {
			w.Pictures[i] = pixel.Image{}
		}
	}
	if 2*cap(w.jpeg.planes[0].pix) > most {
		w.jpeg = jpegPlanes{}
	}
}

// A sourcePoint64 is where a pixel of the result comes from.
type sourcePoint64 struct{ x, y float64 }

// A sourcePoint32 is where a pixel of the result comes from: in pixels, whose middles are whole numbers.
type sourcePoint32 struct{ x, y float32 }
