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

// made is what there is of a batch so far.
type made struct {
	order  *order.Permutation
	fields []batch.Field
	bytes  int // of the batch, without pictures of differing sizes
	// pictures are the batch's, as the job has them. sizes are of those that differ in size.
	pictures []rows
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

// rows are one picture of all samples.
type rows struct {
	at   int      // where they begin in the batch
	sums []uint32 // checksums, if they are wanted
	// pixels of each, where they differ in size and are put together in the end.
	pixels [][]byte
}

// prepare readies w for j's workers.
func (w *Want) prepare(j *Job) {
	n := w.Name.Len()
	w.job = j
	w.left.Store(int64(n))
	m := &w.made
	m.fields, m.bytes = j.Layout(n)
	m.failed = n
	if w.Name.List == nil {
		m.order = j.permutation(w.Name.Epoch)
	}
	if w.Slowest > 0 {
		m.stamps = make([]stamp, n)
	}
	m.pictures = make([]rows, len(j.pictures))
	for k := range m.pictures {
		r := &m.pictures[k]
		r.at = batch.OffsetOf(m.fields, j.pictures[k].field)
		switch {
		case j.pictures[k].ragged():
			m.sizes, r.pixels = make([]size, n), make([][]byte, n)
		case w.Checksum:
			r.sums = make([]uint32, n)
		}
	}
}

// ref is sample i of the want.
func (w *Want) ref(i int) batch.Ref {
	if w.Name.List != nil {
		return w.Name.List[i]
	}
	index, repeat := w.made.order.At(w.Name.Position + uint64(i))
	return batch.Ref{Index: uint64(index), Repeat: repeat}
}

// fail ends the want with what sample i met. Of several samples the first in the batch's order decides, so that the answer does not
// depend on who came first; a machine's own trouble decides over a verdict, since then the verdicts are not all in.
func (w *Want) fail(i int, err error) {
	w.made.mu.Lock()
	defer w.made.mu.Unlock()
	was, is := isVerdict(w.made.err), isVerdict(err)
	before := i < w.made.failed && !errors.Is(err, ErrCancelled) // which may follow from the other one
	if w.made.err == nil || was && !is || was == is && before {
		w.made.failed, w.made.err = i, err
	}
}

func isVerdict(err error) bool {
	var v *SampleError
	return errors.As(err, &v)
}

// verdict notes a sample that did not decode in a batch that goes on.
func (w *Want) verdict(e SampleError) {
	w.made.mu.Lock()
	defer w.made.mu.Unlock()
	w.made.errors = append(w.made.errors, e)
}

// begin notes when the first worker took the want up.
func (w *Want) begin() {
	w.made.mu.Lock()
	first := w.made.begun.IsZero()
	if first {
		w.made.begun = time.Now()
	}
	w.made.mu.Unlock()
	if first && w.Begun != nil {
		w.Begun()
	}
}

// finish counts n samples as done; the last one ends the want.
func (w *Want) finish(n int) {
	w.job.p.queue.finished(n)
	if w.left.Add(-int64(n)) > 0 {
		return
	}
	r := w.result()
	if r.Err == nil {
		w.job.p.queue.made(w, r.Begun, r.CoreSeconds)
	}
	w.Done(r)
}

// result puts the answer together. Nobody else touches the want any more.
func (w *Want) result() Result {
	m := &w.made
	r := Result{Err: m.err, CoreSeconds: time.Duration(w.busy.Load()).Seconds(), Begun: m.begun, Slowest: w.slowest()}
	if r.Err != nil || w.again != nil {
		return r
	}
	slices.SortFunc(m.errors, func(a, b SampleError) int { return a.Offset - b.Offset })
	r.Errors, r.Fields, r.Bytes = m.errors, m.fields, m.bytes
	if m.sizes != nil {
		if r.Err = w.assemble(&r); r.Err != nil {
			return Result{Err: r.Err, CoreSeconds: r.CoreSeconds, Begun: r.Begun, Slowest: r.Slowest}
		}
	}
	w.clearGaps()
	if w.Checksum {
		r.CRC32C = w.checksum(r.Bytes)
	}
	return r
}

// assemble puts pictures that differ in size behind each other.
func (w *Want) assemble(r *Result) error {
	pixels := w.made.pictures[0].pixels
	for i, p := range pixels {
		r.Bytes += len(p)
		r.Sizes = append(r.Sizes, [2]int{w.made.sizes[i].h, w.made.sizes[i].w})
	}
	if len(w.Dst) < r.Bytes {
		var room []byte
		if w.Grow != nil {
			room = w.Grow(r.Bytes)
		}
		if len(room) < r.Bytes {
			return &RoomError{r.Bytes}
		}
		copy(room, w.Dst[:w.made.bytes])
		w.Dst = room
	}
	o := w.made.pictures[0].at
	for _, p := range pixels {
		o += copy(w.Dst[o:], p)
	}
	return nil
}

// clearGaps zeroes the bytes between fields: a name decides all of a batch's bytes.
func (w *Want) clearGaps() {
	for _, f := range w.made.fields {
		if f.Bytes > 0 && (w.Image == nil || !w.job.handsOver(f.Name)) {
			clear(w.Dst[f.Offset+f.Bytes : min(batch.AlignUp(f.Offset+f.Bytes), len(w.Dst))])
		}
	}
}

// checksum joins those of the images, taken while they were in the cache, with those of the rest.
func (w *Want) checksum(bytes int) uint32 {
	sum, done := uint32(0), 0
	for k := range w.made.pictures {
		p, r := &w.job.pictures[k], &w.made.pictures[k]
		if r.sums == nil {
			continue
		}
		sum = crc32.Update(sum, castagnoli, w.Dst[done:r.at])
		for _, s := range r.sums {
			sum = p.tail.apply(sum) ^ s
		}
		done = r.at + len(r.sums)*p.bytes
	}
	return crc32.Update(sum, castagnoli, w.Dst[done:bytes])
}
