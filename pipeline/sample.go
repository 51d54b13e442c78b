package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// sample makes sample i of the want, or what the plan wants in its place.
func (w *Want) sample(i int, k *worker) {
	w.mark(i, takenUp)
	var err error
	if w.again != nil {
		err = w.replay(i, &w.again[i], k)
	} else {
		err = w.first(i, k)
	}
	if k.gone {
		return
	}
	w.mark(i, sampleDone)
	if err != nil {
		w.fail(i, err)
	}
	if err != nil && !isVerdict(err) {
		w.Cancel() // the rest of it is of no use
	}
}

// first makes sample i of a want that is no replay.
func (w *Want) first(i int, k *worker) error {
	ref := w.ref(i)
	err := w.attempt(i, ref, k)
	var verdict *SampleError
	if errors.As(err, &verdict) {
		verdict.Offset = i
		if w.job.plan.OnError != Raise {
			err = w.replace(i, ref, verdict, k)
		}
	}
	return err
}

// replace deals with a sample that does not decode where the plan does not say raise.
func (w *Want) replace(i int, ref batch.Ref, verdict *SampleError, k *worker) error {
	if w.job.plan.OnError == Skip {
		w.hole(i)
		w.verdict(*verdict)
		return nil
	}
	for try := range uint32(maxSubstitutes) {
		other := w.job.standIn(w.Name.Epoch, ref, try)
		var again *SampleError
		err := w.attempt(i, other, k)
		if err == nil {
			verdict.Substitute, verdict.Substituted = other.Index, true
			w.verdict(*verdict)
			return nil
		}
		if !errors.As(err, &again) {
			return err
		}
	}
	return fmt.Errorf("none of the %d samples drawn to stand in for it decodes either: %w", maxSubstitutes, verdict)
}

// maxSubstitutes bounds the search for a sample that decodes.
const maxSubstitutes = 100

// standIn draws a sample for the place of a broken one. Which one depends on the broken one's name alone.
func (j *Job) standIn(epoch uint32, broken batch.Ref, try uint32) batch.Ref {
	x := j.substitute.Block(order.Sample{Epoch: epoch, Index: uint32(broken.Index), Repeat: broken.Repeat}, try)
	index, _ := bits.Mul64(uint64(x[0])<<32|uint64(x[1]), j.Samples())
	return batch.Ref{Index: index, Repeat: broken.Repeat}
}

// attempt reads, decodes and transforms one sample into place i. An error is a *SampleError, a *ReadError, a *RoomError, ErrCancelled or
// errGone.
func (w *Want) attempt(i int, ref batch.Ref, k *worker) error {
	j := w.job
	var room [512]byte
	s, err := j.snapshot.At(int(ref.Index), room[:])
	if err != nil {
		return &ReadError{Index: ref.Index, Cause: err}
	}
	w.number("label", i, uint64(s.Label))
	w.number("index", i, ref.Index)
	if len(j.pictures) == 0 {
		return nil
	}
	mask, release, err := k.readAll(j, ref, &s)
	defer release()
	if err != nil {
		return err
	}
	w.mark(i, filesRead)
	d, giveBack := w.borrow()
	defer giveBack()
	w.mark(i, coreLent)
	err = w.guard(d, ref, &s, func() error { return w.make(d, i, ref, k, &mask) })
	if isOurs(err) {
		return ofSample(err, ref, &s)
	}
	return j.verdict(ref, &s, err)
}

// ofSample names the sample in an error that does not know it.
func ofSample(err error, ref batch.Ref, s *dataset.Sample) error {
	var other *RevisionError
	if !errors.As(err, &other) {
		return err
	}
	named := *other
	named.Index, named.Key = ref.Index, string(s.Key)
	return &named
}

// isOurs reports whether an error of making a sample is no verdict on the sample.
func isOurs(err error) bool {
	var small *RoomError
	var panicked *PanicError
	var other *RevisionError
	return err == nil || errors.Is(err, ErrCancelled) || errors.As(err, &small) || errors.As(err, &panicked) || errors.As(err, &other)
}

func (j *Job) verdict(ref batch.Ref, s *dataset.Sample, cause error) *SampleError {
	op, cause := opOf(cause)
	return &SampleError{Index: ref.Index, Key: string(s.Key), Op: op, Cause: cause}
}

// make decodes and transforms a file, and its mask if there are some, into place i.
func (w *Want) make(d *decoder, i int, ref batch.Ref, k *worker, mask *maskFile) error {
	name := order.Sample{Epoch: w.Name.Epoch, Index: uint32(ref.Index), Repeat: ref.Repeat}
	all, from, err := d.begin(w.job, name, w.Name.Policy, k)
	if err != nil {
		return err
	}
	src, err := d.source(w, all)
	if err != nil {
		return err
	}
	for n := range all {
		if w.job.pictures[n].mask {
			err = w.mask(d, n, i, mask, from, &all[n])
		} else {
			err = w.picture(d, n, i, &all[n], src)
		}
		if err != nil {
			return err
		}
	}
	d.keep(w.job, ref.Index, k.file)
	return nil
}

// mask makes the mask of sample i, which is picture k of the job.
func (w *Want) mask(d *decoder, k, i int, f *maskFile, from size, r *drawn) error {
	dst := w.fixed(d, k, i)
	if err := d.mask(w, f, from, r, dst); err != nil {
		return err
	}
	w.done(k, i, dst)
	return nil
}

// picture makes picture k of sample i.
func (w *Want) picture(d *decoder, k, i int, r *drawn, src transform.Source) error {
	dst, err := w.place(d, k, i, r.size)
	if err != nil {
		return err
	}
	w.boxes(k, i, r.Boxes())
	if err := w.run(d, r, src, dst); err != nil {
		return err
	}
	w.done(k, i, dst)
	return nil
}

// run makes what was drawn for a picture. It leaves off where the want is cancelled.
func (w *Want) run(d *decoder, r *drawn, src transform.Source, dst []byte) error {
	err := r.RunUnless(&w.cancelled, d.until(w, src), dst, 3*r.w)
	if d.renew() || errors.Is(err, transform.ErrStopped) {
		return ErrCancelled
	}
	return err
}

// done hands the pixels of picture k of sample i on, or notes their checksum.
func (w *Want) done(k, i int, dst []byte) {
	switch {
	case w.Image != nil && !w.job.pictures[k].mask:
		w.Image(k, i, dst)
	case w.made.pictures[k].sums != nil:
		w.made.pictures[k].sums[i] = crc32.Checksum(dst, castagnoli)
	}
}

// place is where the pixels of picture k of sample i go.
func (w *Want) place(d *decoder, k, i int, result size) ([]byte, error) {
	if w.job.pictures[k].ragged() {
		return w.apart(k, i, result)
	}
	return w.fixed(d, k, i), nil
}

// fixed is the place of picture k of sample i where all samples are of one size.
func (w *Want) fixed(d *decoder, k, i int) []byte {
	n := w.job.pictures[k].bytes
	if w.Image != nil && !w.job.pictures[k].mask {
		if cap(d.pixels) < n {
			d.pixels = make([]byte, n)
		}
		return d.pixels[:n]
	}
	o := w.made.pictures[k].at + i*n
	return w.Dst[o : o+n : o+n]
}

// apart makes a place for picture k of a sample of a batch that is put together when all sizes are known.
func (w *Want) apart(k, i int, result size) ([]byte, error) {
	n, m := result.bytes(), &w.made
	taken := m.taken.Add(int64(n))
	if w.Charge != nil && !w.Charge(n) {
		return nil, &RoomError{m.bytes + int(taken)}
	}
	m.pictures[k].pixels[i], m.sizes[i] = make([]byte, n), result
	return m.pictures[k].pixels[i], nil
}

// hole fills the place of a sample that is left out: with zeros where all samples are of one size, else with nothing.
func (w *Want) hole(i int) {
	for k := range w.job.pictures {
		if w.job.pictures[k].ragged() { // it may have been begun
			w.made.pictures[k].pixels[i], w.made.sizes[i] = nil, size{}
		} else {
			dst := w.fixed(&decoder{}, k, i)
			clear(dst)
			w.done(k, i, dst)
		}
		w.boxes(k, i, make([]transform.Box, w.job.pictures[k].chain.Boxes()))
	}
	w.number("label", i, 0)
}

// boxes writes the rectangles of picture k of sample i.
func (w *Want) boxes(k, i int, boxes []transform.Box) {
	for at, b := range boxes {
		for n, x := range b {
			w.number(w.job.pictures[k].boxes, (i*len(boxes)+at)*len(b)+n, uint64(x))
		}
	}
}

// number writes element i of a field of integers, if the batch has it.
func (w *Want) number(field string, i int, v uint64) {
	if o := batch.OffsetOf(w.made.fields, field); o >= 0 {
		binary.LittleEndian.PutUint64(w.Dst[o+8*i:], v)
	}
}
