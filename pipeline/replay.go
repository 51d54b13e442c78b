package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// Sample is one sample made again, with all that was drawn for it.
type Sample struct {
	batch.Ref
	Key          string
	Label        int64
	EncodedBytes int64
	// Image is Height × Width × 3 bytes; empty where no pixels were asked for or Err is set.
	Height, Width int
	Image         []byte
	Draws         []transform.Draw
	// Mask is Height × Width numbers, for plans with masks.
	Mask []byte
	// Values are those that the plan asks for, by their fields; none where no pixels were asked for.
	Values map[string][]byte
	// Views, of a plan that has some, stand in place of Height, Width, Image, Draws and Mask.
	Views []View
	Err   *SampleError
}

// View is one view of a sample made again; see Sample.
type View struct {
	Height, Width int
	Image         []byte
	// Mask is Height × Width numbers, for plans with masks.
	Mask  []byte
	Draws []transform.Draw
}

// Replay makes the samples of a name again, with all that was drawn for them, on an account's share of the pipeline; nil: one of the
// pipeline's own. most is how many bytes of pixels a sample may take: one that takes more is a *RoomError, before there is memory for it.
// Where it is 0 no file is opened, nothing queues, and Sample holds only what the snapshot knows. A sample that does not decode is no
// error; its Sample says so.
func (j *Job) Replay(ctx context.Context, n batch.Name, most int, a *share.Account) ([]Sample, error) {
	if err := j.checkName(&n); err != nil {
		return nil, err
	}
	w := &Want{Name: n, Account: a, Request: batch.Request{Due: time.Now()}, replay: &replay{samples: make([]Sample, n.Len()), most: most}}
	w.prepareFor(j)
	if most > 0 {
		return w.replay.samples, w.runReplay(ctx)
	}
	for i := range w.replay.samples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := w.describeSample(i); err != nil {
			return nil, err
		}
	}
	return w.replay.samples, nil
}

// replay is what a want makes in place of a batch.
type replay struct {
	samples []Sample
	most    int // bytes of pixels that one of these may take
}

// runReplay has workers make all samples of a want that is a replay.
func (w *Want) runReplay(ctx context.Context) error {
	done := make(chan error, 1)
	w.Done = func(r Result) { done <- r.Err }
	if !w.job.p.queue.pushWant(w) {
		return ErrClosed
	}
	defer context.AfterFunc(ctx, w.Cancel)()
	err := <-done
	if errors.Is(err, ErrCancelled) {
		return ctx.Err()
	}
	return err
}

// describeSample sets what the snapshot knows of sample i, and returns its line.
func (w *Want) describeSample(i int) (dataset.Sample, error) {
	s := &w.replay.samples[i]
	s.Ref = w.assembly.sampleAt(i)
	line, err := w.job.snapshot.At(int(s.Index), nil)
	if err != nil {
		return line, &ReadError{Index: s.Index, Cause: err}
	}
	s.Key, s.Label, s.EncodedBytes = string(line.Key), line.Label, line.Size
	return line, nil
}

// replaySample makes the sample at hand again. An error is this machine's trouble.
func (k *worker) replaySample() error {
	w := k.want
	j, s := w.job, &w.replay.samples[k.at]
	line, err := w.describeSample(k.at)
	if err != nil {
		return err
	}
	if !j.readsFiles() {
		s.Values = j.copyValues(&line, nil)
		return nil
	}
	mask, release, err := k.readAll(j, s.Ref, &line)
	defer release()
	defer k.pixels.release()
	if err == nil {
		s.Values = j.copyValues(&line, k.file)
	}
	if err == nil && len(j.pictures) > 0 {
		d, begun := k.acquireDecoder()
		defer k.releaseDecoder(d, begun)
		err = d.catchPanic(j.p.options.OnPanic, s.Ref, &line, func() error { return d.replayPictures(k, s, &mask) })
		if isSampleVerdict(err) {
			err = j.verdictOn(s.Ref, &line, err)
		}
		err = nameSample(err, s.Ref, &line)
	}
	return s.takeVerdict(k.at, err)
}

// takeVerdict notes a verdict on sample i, and returns other errors.
func (s *Sample) takeVerdict(i int, err error) error {
	if errors.As(err, &s.Err) {
		s.Err.Offset = i
		return nil
	}
	return err
}

// replayPictures decodes and transforms a file and its mask, and tells what was drawn.
func (d *decoder) replayPictures(worker *worker, s *Sample, mask *maskFile) error {
	w := worker.want
	name := order.Sample{Epoch: w.Name.Epoch, Index: uint32(s.Index), Repeat: s.Repeat}
	all, from, err := d.beginSample(w.job, name, w.Name.Policy, worker)
	if err != nil {
		return err
	}
	if n := w.job.pixelBytes(all); n > w.replay.most {
		return &RoomError{n}
	}
	src, err := d.openSource(worker, all, from)
	if err != nil {
		return err
	}
	views := make([]View, len(all))
	for k := range all {
		r, v := &all[k], &views[k]
		if w.job.pictures[k].mask {
			v = &views[k-len(all)/2] // masks come behind as many pictures
			v.Mask = make([]byte, w.job.pictures[k].bytes)
			if err := d.makeMask(w, mask, from, r, v.Mask); err != nil {
				return err
			}
			continue
		}
		v.Height, v.Width, v.Image = r.h, r.w, make([]byte, r.countBytes())
		if err := d.render(w, r, src, v.Image); err != nil {
			return err
		}
		if v.Draws, err = r.Draws(from.w, from.h, name); err != nil {
			return err
		}
	}
	if n := len(w.job.plan.Views); n > 0 {
		s.Views = views[:n]
		return nil
	}
	s.Height, s.Width, s.Image, s.Draws, s.Mask = views[0].Height, views[0].Width, views[0].Image, views[0].Draws, views[0].Mask
	return nil
}

// pixelBytes is what the pictures and the mask of a sample take whose parameters were drawn.
func (j *Job) pixelBytes(all []renderer) (n int) {
	for k, r := range all {
		if j.pictures[k].mask {
			n += j.pictures[k].bytes
		} else {
			n += r.countBytes()
		}
	}
	return n
}

// opOf names the step that refused a sample, and gives its reason.
func opOf(err error) (op string, cause error) {
	var e *transform.OpError
	if errors.As(err, &e) {
		return e.Op, e.Cause
	}
	return "decode", err
}
