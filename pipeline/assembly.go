package pipeline

import (
	"errors"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/order"
)

// assembly is what there is of a want's batch so far. Workers write the places of different samples at once, without a
// lock; what concerns all samples is guarded by mu.
type assembly struct {
	want   *Want
	order  *order.Permutation // nil: the want lists its samples
	fields []batch.Field
	bytes  int // of the batch, without pictures of differing sizes
	// pictures are the batch's, as the job has them. sizes are of those that differ in size.
	pictures []pictureRows
	sizes    []size
	taken    atomic.Int64 // bytes of pictures that differ in size
	stamps   []stamp      // of samples; nil: nobody asks

	mu     sync.Mutex
	begun  time.Time
	errors []SampleError
	// failed is the first sample, in the batch's order, that ends the want, and err what it says.
	failed int
	err    error
}

// pictureRows are one picture of all samples.
type pictureRows struct {
	at   int      // where they begin in the batch
	sums []uint32 // checksums, if they are wanted
	// pixels of each, where they differ in size and are put together in the end.
	pixels [][]byte
}

// prepareFor readies an empty assembly for the batch of a want that has its job.
func (a *assembly) prepareFor(w *Want) {
	j, n := w.job, w.Name.Len()
	a.want, a.failed = w, n
	a.fields, a.bytes = j.Layout(n)
	if w.Name.List == nil {
		a.order = j.permutationOf(w.Name.Epoch)
	}
	if w.Slowest > 0 {
		a.stamps = make([]stamp, n)
	}
	a.pictures = make([]pictureRows, len(j.pictures))
	for k := range a.pictures {
		r := &a.pictures[k]
		r.at = batch.OffsetOf(a.fields, j.pictures[k].field)
		switch {
		case j.pictures[k].isRagged():
			a.sizes, r.pixels = make([]size, n), make([][]byte, n)
		case w.Checksum:
			r.sums = make([]uint32, n)
		}
	}
}

// sampleAt is which sample stands at place i.
func (a *assembly) sampleAt(i int) batch.Ref {
	if a.order == nil {
		return a.want.Name.List[i]
	}
	index, repeat := a.order.At(a.want.Name.Position + uint64(i))
	return batch.Ref{Index: uint64(index), Repeat: repeat}
}

// setFailure ends the want with what sample i met. Of several samples the first in the batch's order decides, so that
// the answer does not depend on who came first; a machine's own trouble decides over a verdict, since then the verdicts
// are not all in.
func (a *assembly) setFailure(i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, is := isVerdict(a.err), isVerdict(err)
	before := i < a.failed && !errors.Is(err, ErrCancelled) // which may follow from the other one
	if a.err == nil || was && !is || was == is && before {
		a.failed, a.err = i, err
	}
}

func isVerdict(err error) bool {
	var v *SampleError
	return errors.As(err, &v)
}

// addError notes a sample that did not decode in a batch that goes on.
func (a *assembly) addError(e SampleError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errors = append(a.errors, e)
}

// noteBegin notes when the first worker took the want up.
func (a *assembly) noteBegin() {
	a.mu.Lock()
	first := a.begun.IsZero()
	if first {
		a.begun = time.Now()
	}
	a.mu.Unlock()
	if first && a.want.Begun != nil {
		a.want.Begun()
	}
}

// buildResult puts the answer together. Nobody else touches the want any more.
func (a *assembly) buildResult() Result {
	w := a.want
	r := Result{Err: a.err, CoreSeconds: time.Duration(w.busy.Load()).Seconds(), Index: w.index.Use(), Begun: a.begun, Slowest: a.listSlowest()}
	if r.Err != nil || w.replay != nil {
		return r
	}
	slices.SortFunc(a.errors, func(a, b SampleError) int { return a.Offset - b.Offset })
	r.Errors, r.Fields, r.Bytes = a.errors, a.fields, a.bytes
	if a.sizes != nil {
		if r.Err = a.joinRagged(&r); r.Err != nil {
			return Result{Err: r.Err, CoreSeconds: r.CoreSeconds, Begun: r.Begun, Slowest: r.Slowest}
		}
	}
	a.clearGaps()
	if w.Checksum {
		r.CRC32C = a.sumBytes(r.Bytes)
	}
	return r
}

// joinRagged puts pictures that differ in size behind each other.
func (a *assembly) joinRagged(r *Result) error {
	w, pixels := a.want, a.pictures[0].pixels
	for i, p := range pixels {
		r.Bytes += len(p)
		r.Sizes = append(r.Sizes, [2]int{a.sizes[i].h, a.sizes[i].w})
	}
	if len(w.Dst) < r.Bytes {
		var room []byte
		if w.Grow != nil {
			room = w.Grow(r.Bytes)
		}
		if len(room) < r.Bytes {
			return &RoomError{r.Bytes}
		}
		copy(room, w.Dst[:a.bytes])
		w.Dst = room
	}
	o := a.pictures[0].at
	for _, p := range pixels {
		o += copy(w.Dst[o:], p)
	}
	return nil
}

// clearGaps zeroes the bytes between fields: a name decides all of a batch's bytes.
func (a *assembly) clearGaps() {
	w := a.want
	for _, f := range a.fields {
		if f.Bytes > 0 && (w.Image == nil || !w.job.handsOver(f.Name)) {
			clear(w.Dst[f.Offset+f.Bytes : min(batch.AlignUp(f.Offset+f.Bytes), len(w.Dst))])
		}
	}
}

// sumBytes is the checksum of the batch: those of the images, taken while they were in the cache, joined with those of
// the rest.
func (a *assembly) sumBytes(bytes int) uint32 {
	w, sum, done := a.want, uint32(0), 0
	for k := range a.pictures {
		p, r := &w.job.pictures[k], &a.pictures[k]
		if r.sums == nil {
			continue
		}
		sum = crc32.Update(sum, castagnoli, w.Dst[done:r.at])
		for _, s := range r.sums {
			sum = p.tail.appendTo(sum) ^ s
		}
		done = r.at + len(r.sums)*p.bytes
	}
	return crc32.Update(sum, castagnoli, w.Dst[done:bytes])
}
