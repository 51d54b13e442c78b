package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// errGone says that a worker's call was given up, and its sample with it: the want is no longer the worker's.
var errGone = errors.New("the call was given up")

// callStorage makes a call that storage may not give back. The error is that of f, a *bulkhead.HungError, or errGone.
func (k *worker) callStorage(r *bulkhead.Root, op string, key []byte, f func() error) error {
	if err := k.call.Begin(r, op, key); err != nil {
		return err
	}
	err := f()
	kept, replaced := k.call.End(err)
	k.surplus = k.surplus || replaced
	k.call.Surplus = k.surplus
	if !kept {
		k.gone = true
		return errGone
	}
	return err
}

// leavePlaces gives the places back that the sample at hand was read in, unless it was given up: GaveUp has done so.
func (k *worker) leavePlaces() {
	if k.gone {
		return
	}
	for _, r := range k.places {
		r.Leave()
	}
	k.places = nil
}

// Stuck implements bulkhead.Owner: another worker takes this one's place.
func (k *worker) Stuck() { k.p.addWorker() }

// Unwanted implements bulkhead.Owner.
func (k *worker) Unwanted() bool { return k.want.cancelled.Load() }

// GaveUp implements bulkhead.Owner: the sample fails as this machine's trouble.
func (k *worker) GaveUp(e *bulkhead.HungError) {
	w := k.want
	if e == nil {
		w.assembly.setFailure(k.at, ErrCancelled)
	} else {
		w.failWith(k.at, &ReadError{Index: w.assembly.sampleAt(k.at).Index, Key: e.Key, Cause: WithTrouble(w.job.snapshot.Path(), e)})
	}
	w.finishSamples(1)
	for _, r := range k.places {
		r.Leave()
	}
	k.p.removeWorker()
}

// comeBack has a worker whose sample was given up go on as a new one, unless there is one in its place.
func (k *worker) comeBack() {
	if !k.surplus {
		k.p.addWorker()
	}
}

// rootOf is the root of a snapshot's files.
func (p *Pipeline) rootOf(s *dataset.Snapshot) *bulkhead.Root { return p.roots.Of(s.Path()) }

// readAll reads a sample's file, its mask and its index, and gives the places back. The file is in k.file; release
// gives the mask's memory back. An error is a *ReadError, a verdict or errGone.
func (k *worker) readAll(j *Job, ref batch.Ref, s *dataset.Sample) (mask maskFile, release func(), err error) {
	release = func() {}
	if len(k.places) == 0 { // another sample stands in, or a second try
		k.enterPlaces(j)
	}
	if err = k.readSample(j, ref, s); err == nil {
		mask, release, err = k.readMask(j, ref, s)
	}
	if err == nil && !k.findPixels(j, ref) {
		err = k.findIndex(j, ref)
	}
	k.leavePlaces()
	return mask, release, err
}

// readSample reads a sample's file.
func (k *worker) readSample(j *Job, ref batch.Ref, s *dataset.Sample) (err error) {
	if err := j.plan.Limits.CheckFile(s.Size); err != nil {
		return j.verdictOn(ref, s, err)
	}
	begun := time.Now()
	k.file, err = k.readFile(j.root, j.snapshot, int(ref.Index), s, k.file)
	j.p.spending.reading.Add(int64(time.Since(begun)))
	switch {
	case err == nil || errors.Is(err, errGone):
		return err
	case errors.Is(err, context.Canceled) && k.want.cancelled.Load(): // and so was what was read ahead for it
		return ErrCancelled
	}
	if hung, ok := err.(*bulkhead.HungError); ok { //nolint:errorlint // of a root that is sick, and no more than that
		err = WithTrouble(j.snapshot.Path(), hung)
	}
	return &ReadError{Index: ref.Index, Key: string(s.Key), Cause: err}
}

// findIndex looks for the index of the sample's file. Where its storage does not answer the sample is made without.
func (k *worker) findIndex(j *Job, ref batch.Ref) error {
	k.making, k.found = recording{}, k.found[:0]
	if k.store, k.index = j.indexNow(), int(ref.Index); k.store == nil {
		return nil
	}
	err := k.callStorage(j.p.indexes.root, "look for the index", nil, func() error {
		k.found, k.making = k.store.Find(k.index, k.file, k.found)
		return nil
	})
	if errors.Is(err, errGone) {
		return err
	}
	j.p.indexes.index.Counts.count(k.found)
	k.want.index.count(k.found)
	return nil
}

// enterPlaces takes the places that a sample of a job is read in.
func (k *worker) enterPlaces(j *Job) {
	for _, r := range j.roots {
		r.Enter()
	}
	k.places = j.roots
}

// A readFunc reads the file of sample i of a snapshot over buf. line is what the list has of it; nil: that is not at hand.
type readFunc func(ctx context.Context, s *dataset.Snapshot, generation uint64, i int, line *dataset.Sample, buf []byte) ([]byte, error)

// readNow is the readFunc that waits for nothing but the storage.
func readNow(ctx context.Context, s *dataset.Snapshot, generation uint64, i int, line *dataset.Sample, buf []byte) ([]byte, error) {
	if line == nil {
		return s.ReadIn(ctx, generation, i, buf)
	}
	return s.ReadLine(ctx, generation, line, buf)
}

// readFile reads the file of sample i of a snapshot, which line is of, over buf.
func (k *worker) readFile(root *bulkhead.Root, s *dataset.Snapshot, i int, line *dataset.Sample, buf []byte) ([]byte, error) {
	k.snapshot, k.store, k.index, k.root = s, nil, i, root
	data := buf
	err := k.callStorage(root, "read", line.Key, func() (err error) {
		if ahead := k.p.ahead.claim(k.want, k.at, s, i); ahead != nil {
			if data, err = k.p.ahead.take(k.want, ahead, buf); !errors.Is(err, errAlone) {
				return err
			}
		}
		data, err = k.p.options.read(k.p.context, s, root.Generation(), i, line, buf)
		return err
	})
	return data, err
}

// Again implements bulkhead.Owner: it reads the same file once more, or looks for its index. It uses nothing that is
// open.
func (k *worker) Again() func() error {
	if k.store != nil {
		x, data, i, file := &k.p.indexes, k.want.job.snapshot, k.index, k.file
		return func() error { return x.findAnew(data, i, file) }
	}
	s, i, read, ctx, next := k.snapshot, k.index, k.p.options.read, k.p.context, k.root.Generation()+1
	return func() error {
		_, err := read(ctx, s, next, i, nil, nil)
		return err
	}
}
