package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
)

// A Want asks for one batch. It is used once.
type Want struct {
	Name batch.Name
	// Request says where the batch goes, fields placed as Job.Layout(Name.Len()) says, and when it is due. The pipeline
	// owns Dst from Submit to Done; without room for the batch the want ends with *RoomError. Step is the one of the
	// Account's that needs the batch.
	batch.Request
	// Charge, if set, is asked, from any worker, before memory is taken besides Dst: for pictures that differ in size,
	// until Done. Where it returns false the want ends with *RoomError.
	Charge func(bytes int) bool
	// Checksum asks for Result.CRC32C. Not together with Image.
	Checksum bool
	// Slowest is how many of the samples that take longest Result.Slowest tells of.
	Slowest int
	// Account is whose share of the pipeline it takes; see control/share. Its wants are made in order, so that one
	// whose storage hangs holds up those behind it: give each plan one of its own. Nil: one of the pipeline's own.
	Account *share.Account
	// Done is called exactly once, from a goroutine of the pipeline. It must not block. Afterwards nobody writes Dst.
	Done func(Result)

	job       *Job
	entry     *share.Entry[*Want] // guarded by the queue until the want ends
	left      atomic.Int64        // samples that are not done
	cancelled atomic.Bool
	busy      atomic.Int64 // nanoseconds of decoders
	index     IndexCounts  // of its pictures
	assembly  assembly
	ahead     *wantAhead // nil: workers read its files
	replay    *replay    // nil: it makes a batch, in Dst
}

// Result is what became of a want.
type Result struct {
	// Err is nil, *SampleError (the first in order; the plan says raise), *ReadError, *RoomError, ErrCancelled or
	// ErrClosed.
	Err error
	// Errors are the samples that did not decode, in order, where the plan says skip or substitute. A skipped sample is
	// a hole: zeros.
	Errors []SampleError
	// Bytes is the size of the batch in Dst, Fields its arrays.
	Bytes  int
	Fields []batch.Field
	// Sizes holds height and width of each sample where they differ; the pixels lie behind each other.
	Sizes [][2]int
	// CRC32C covers Dst[:Bytes].
	CRC32C uint32
	// CoreSeconds is the time workers spent on it.
	CoreSeconds float64
	// Index is what indexes its pictures had.
	Index IndexUse
	// Begun is when the first worker took it up.
	Begun time.Time
	// Slowest are the samples that took longest, also where the want failed, as far as they were begun: as many as were
	// asked for.
	Slowest []Timing
}

// Hasten makes what is left of a submitted want due earlier, for an account that needs it by then for that step, and
// takes its share for it. A due that is not earlier changes nothing.
func (w *Want) Hasten(a *share.Account, step uint64, due time.Time) {
	if w.job != nil {
		w.job.p.queue.hastenWant(w, a, step, due)
	}
}

// Cancel gives a submitted want up. Samples that were begun are finished, or left off between two bands of rows of a
// picture that is being decoded, between two passes and within ops that can take long; a read that storage does not
// give back is left to it. Then Done gets ErrCancelled, unless the batch was complete.
func (w *Want) Cancel() {
	if w.cancelled.CompareAndSwap(false, true) && w.job != nil {
		w.job.p.queue.dropWant(w)
		w.job.p.ahead.drop(w.ahead)
	}
}

// isBlocked reports whether no sample of a queued want can be read now, since a root that it is read from has no place.
func (w *Want) isBlocked() bool {
	for _, r := range w.job.roots {
		if r.Full() {
			return true
		}
	}
	return false
}

// prepareFor readies the want for j's workers.
func (w *Want) prepareFor(j *Job) {
	w.job = j
	w.left.Store(int64(w.Name.Len()))
	w.assembly.prepareFor(w)
}

// failWith has the want end with what sample i met, and leaves off what is left of it.
func (w *Want) failWith(i int, err error) {
	w.assembly.setFailure(i, err)
	w.Cancel() // the rest of it is of no use
}

// finishSamples counts n samples as done; the last one ends the want.
func (w *Want) finishSamples(n int) {
	w.job.p.queue.countFinished(n)
	if w.left.Add(-int64(n)) > 0 {
		return
	}
	w.job.p.ahead.drop(w.ahead)
	r := w.assembly.buildResult()
	if r.Err == nil {
		w.job.p.queue.countMade(w, r.Begun, r.CoreSeconds)
	}
	w.Done(r)
}
