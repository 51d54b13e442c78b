package pipeline

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// makeSample makes the sample at hand, or what the plan wants in its place.
func (k *worker) makeSample() {
	w, i := k.want, k.at
	w.assembly.markStage(i, takenUp)
	var err error
	if w.replay != nil {
		err = k.replaySample()
	} else {
		err = k.makeFirst()
	}
	if k.gone {
		return
	}
	w.assembly.markStage(i, sampleDone)
	switch {
	case err == nil:
	case isVerdict(err):
		w.assembly.setFailure(i, err)
	default:
		w.failWith(i, err)
	}
}

// makeFirst makes the sample at hand for a batch.
func (k *worker) makeFirst() error {
	ref := k.want.assembly.sampleAt(k.at)
	err := k.trySample(ref)
	if verdict, ok := errors.AsType[*SampleError](err); ok {
		verdict.Offset = k.at
		if k.want.job.plan.OnError != Raise {
			err = k.replaceSample(ref, verdict)
		}
	}
	return err
}

// replaceSample deals with a sample that does not decode where the plan does not say raise.
func (k *worker) replaceSample(ref batch.Ref, verdict *SampleError) error {
	w := k.want
	if w.job.plan.OnError == Skip {
		w.assembly.clearSample(k.at)
		w.assembly.addError(*verdict)
		return nil
	}
	for try := range uint32(maxSubstitutes) {
		other := w.job.substituteFor(w.Name.Epoch, ref, try)
		var again *SampleError
		err := k.trySample(other)
		if err == nil {
			verdict.Substitute, verdict.Substituted = other.Index, true
			w.assembly.addError(*verdict)
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

// substituteFor draws a sample for the place of a broken one. Which one depends on the broken one's name alone.
func (j *Job) substituteFor(epoch uint32, broken batch.Ref, try uint32) batch.Ref {
	x := j.substitute.Block(order.Sample{Epoch: epoch, Index: uint32(broken.Index), Repeat: broken.Repeat}, try)
	index, _ := bits.Mul64(uint64(x[0])<<32|uint64(x[1]), j.Samples())
	return batch.Ref{Index: index, Repeat: broken.Repeat}
}

// trySample reads, decodes and transforms one sample into the place at hand. An error is a *SampleError, a *ReadError,
// a *RoomError, ErrCancelled or errGone.
func (k *worker) trySample(ref batch.Ref) error {
	w, i := k.want, k.at
	j := w.job
	s := &k.line
	var err error
	if *s, err = j.snapshot.At(int(ref.Index), k.key[:]); err != nil {
		return &ReadError{Index: ref.Index, Cause: err}
	}
	w.assembly.setNumber("label", i, uint64(s.Label))
	w.assembly.setNumber("index", i, ref.Index)
	if !j.readsFiles() {
		w.assembly.setValues(i, s, nil)
		return nil
	}
	mask, release, err := k.readAll(j, ref, s)
	defer release()
	defer k.pixels.release()
	if err != nil {
		return err
	}
	w.assembly.setValues(i, s, k.file)
	if len(j.pictures) == 0 {
		return nil
	}
	w.assembly.markStage(i, filesRead)
	d, begun := k.acquireDecoder()
	defer k.releaseDecoder(d, begun)
	w.assembly.markStage(i, coreLent)
	err = d.catchPanic(j.p.options.OnPanic, ref, s, func() error { return d.makePictures(k, ref, &mask) })
	if !isSampleVerdict(err) {
		return nameSample(err, ref, s)
	}
	return j.verdictOn(ref, s, err)
}

// nameSample names the sample in an error that does not know it.
func nameSample(err error, ref batch.Ref, s *dataset.Sample) error {
	other, ok := errors.AsType[*RevisionError](err)
	if !ok {
		return err
	}
	named := *other
	named.Index, named.Key = ref.Index, string(s.Key)
	return &named
}

// isSampleVerdict reports whether what making a sample returned is a verdict on the sample.
func isSampleVerdict(err error) bool {
	if err == nil || errors.Is(err, ErrCancelled) {
		return false
	}
	_, small := errors.AsType[*RoomError](err)
	_, panicked := errors.AsType[*PanicError](err)
	_, other := errors.AsType[*RevisionError](err)
	return !small && !panicked && !other
}

// verdictOn is the error that a sample's own bytes caused.
func (j *Job) verdictOn(ref batch.Ref, s *dataset.Sample, cause error) *SampleError {
	op, cause := opOf(cause)
	return &SampleError{Index: ref.Index, Key: string(s.Key), Op: op, Cause: cause}
}

// makePictures decodes and transforms the file that a worker has read, and its mask if there are some, into the
// worker's place.
func (d *decoder) makePictures(k *worker, ref batch.Ref, mask *maskFile) error {
	w := k.want
	name := order.Sample{Epoch: w.Name.Epoch, Index: uint32(ref.Index), Repeat: ref.Repeat}
	all, from, err := d.beginSample(w.job, name, w.Name.Policy, k)
	if err != nil {
		return err
	}
	src, err := d.openSource(k, all, from)
	if err != nil {
		return err
	}
	for n := range all {
		if w.job.pictures[n].mask {
			dst := w.assembly.fixedPlace(d, n, k.at)
			if err = d.makeMask(w, mask, from, &all[n], dst); err == nil {
				w.assembly.finishPicture(n, k.at, dst)
			}
		} else if err = w.assembly.setDraws(k.at, from, &all[n]); err == nil {
			err = d.makePicture(w, n, k.at, &all[n], src)
		}
		if err != nil {
			return err
		}
	}
	d.keepIndex(k.store, ref.Index, k.file)
	return nil
}

// makePicture makes picture k of sample i of a want.
func (d *decoder) makePicture(w *Want, k, i int, r *renderer, src transform.Source) error {
	dst, err := w.assembly.placeOf(d, k, i, r.size)
	if err != nil {
		return err
	}
	w.assembly.setBoxes(k, i, r.Boxes())
	if err := d.render(w, r, src, dst); err != nil {
		return err
	}
	w.assembly.finishPicture(k, i, dst)
	return nil
}

// render makes what was drawn for a picture. It leaves off where the want is cancelled.
func (d *decoder) render(w *Want, r *renderer, src transform.Source, dst []byte) error {
	err := r.RunUnless(&w.cancelled, d.stopWith(&w.cancelled, src), dst, 3*r.w)
	if d.replaceStopped() || errors.Is(err, transform.ErrStopped) {
		return ErrCancelled
	}
	return err
}
