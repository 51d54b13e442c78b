package pipeline

import (
	"image"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/pixel"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// stoppable is a source that leaves off between two bands of rows once its want is cancelled: a codec knows nothing of
// wants, and decodes a picture of a hundred million pixels for seconds. Whoever decodes is then as it was in the middle
// of it, and not to be used again.
type stoppable struct {
	src       transform.Source
	cancelled *atomic.Bool
	sink      pixel.Sink
	stopped   bool
}

// stoppedDecoding unwinds a codec.
type stoppedDecoding struct{}

// Decode implements transform.Source. The error is transform.ErrStopped where it left off.
func (s *stoppable) Decode(r image.Rectangle, sink pixel.Sink) (err error) {
	s.sink = sink
	defer func() {
		if s.stopped { // and not for another panic, whose stack is wanted
			_ = recover()
			err = transform.ErrStopped
		}
	}()
	return s.src.Decode(r, s)
}

// Rows implements pixel.Sink.
func (s *stoppable) Rows(pix []byte, stride, n int) {
	if s.cancelled.Load() {
		s.stopped = true
		panic(stoppedDecoding{})
	}
	s.sink.Rows(pix, stride, n)
}

// stopWith is a source that leaves off once its want is cancelled.
func (d *decoder) stopWith(cancelled *atomic.Bool, src transform.Source) transform.Source {
	d.stop = stoppable{src: src, cancelled: cancelled}
	return &d.stop
}

// replaceStopped replaces codecs that were stopped in the middle of a picture. It reports whether they were.
func (d *decoder) replaceStopped() bool {
	if !d.stop.stopped {
		return false
	}
	d.stop = stoppable{}
	d.codec, d.maskCodec = codec.NewDecoder(d.level), nil
	return true
}
