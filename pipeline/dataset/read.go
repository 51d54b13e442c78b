package dataset

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Spare is how many bytes of capacity Read leaves behind the data at least: decoders may read them, and use nothing
// of what they read.
const Spare = 64

// request is what a read asks the store for.
type request struct {
	object store.Object
	room   []byte // for keys
	name   []byte // of an object that the sample is a member of
	part   string // of it that has to be unpacked
}

var requests = sync.Pool{New: func() any { return &request{room: make([]byte, 0, 512), name: make([]byte, 0, 512)} }}

// Read reads the file of sample i, whole, over buf and returns buf, grown where it must. When buf is large enough it
// allocates nothing. Values that lie in files are read too, see ReadValue. The error is a *ChangedError when the file
// is not the one that the snapshot lists, then the next Open scans again; a *TooLargeError; or a *fs.PathError with the
// sample's key when the system cannot read it. See store.Store for what ctx ends.
func (s *Snapshot) Read(ctx context.Context, i int, buf []byte) ([]byte, error) {
	return s.ReadIn(ctx, s.generation.Load(), i, buf)
}

// ReadIn is Read in a generation of the storage. Generations are counted by the caller, who begins the next one when
// the storage has come back after it did not answer: what was open then may hang for ever, as on a file system that was
// unmounted and mounted anew, and is left alone from then on.
func (s *Snapshot) ReadIn(ctx context.Context, generation uint64, i int, buf []byte) ([]byte, error) {
	r := requests.Get().(*request)
	defer requests.Put(r)
	sample, err := s.At(i, r.room)
	if err != nil {
		return buf[:0], err
	}
	r.room = sample.Key[:0]
	return s.readLine(ctx, generation, r, &sample, buf)
}

// ReadLine is ReadIn of a sample that At has told. It may write into the memory behind the sample's key.
func (s *Snapshot) ReadLine(ctx context.Context, generation uint64, sample *Sample, buf []byte) ([]byte, error) {
	r := requests.Get().(*request)
	defer requests.Put(r)
	return s.readLine(ctx, generation, r, sample, buf)
}

// readLine is ReadLine with a request's memory.
func (s *Snapshot) readLine(ctx context.Context, generation uint64, r *request, sample *Sample, buf []byte) ([]byte, error) {
	if sample.Size > s.maxBytes {
		return buf[:0], &TooLargeError{Path: string(sample.Key), Size: sample.Size, Limit: s.maxBytes}
	}
	if need := int(sample.Size) + Spare + valueBytes(s.form, sample); cap(buf) < need {
		buf = make([]byte, 0, need+need/4)
	}
	if err := s.locate(sample, r); err != nil {
		return buf[:0], err
	}
	err := s.readThrough(ctx, generation, func(from *source) error {
		if s.ValuesInFiles() {
			return readParts(s.partsOf(sample, buf[:cap(buf)]), func(p []byte, off int64) error { return s.fill(ctx, from, r, p, off) })
		}
		return s.fill(ctx, from, r, buf[:sample.Size], sample.Offset)
	})
	if err != nil {
		return buf[:0], s.readError(sample, err)
	}
	return buf[:sample.Size], nil
}

// fill reads a sample's bytes: from the disk that keeps blocks, if they are there, or from the store.
func (s *Snapshot) fill(ctx context.Context, from *source, r *request, p []byte, off int64) error {
	switch {
	case r.part != "":
		return unpacker{s}.unpackInto(ctx, from, r, p, off)
	case s.blocks == nil || from.Reads() == 0 || len(p) == 0: // a disk needs no other disk
		return from.ReadAt(ctx, &r.object, p, off)
	}
	key := s.key(&r.object, "", off, int64(len(p)))
	if s.blocks.Read(key, p) {
		return nil
	}
	err := from.ReadAt(ctx, &r.object, p, off)
	if err == nil {
		s.blocks.Write(key, p)
	}
	return err
}

// locate says which object a sample lies in.
func (s *Snapshot) locate(sample *Sample, r *request) (err error) {
	r.part = ""
	if s.form&manifest.Members == 0 {
		r.object = store.Object{Name: sample.Key, Size: sample.Size, Modified: sample.ModifiedNanos, Version: sample.Version}
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return ErrClosed
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	o := s.manifest.Object(sample.Object)
	r.name = append(append(r.name[:0], o.Version...), o.Name...) // a store may write behind the name
	n := len(o.Version)
	r.object = store.Object{Name: r.name[n:], Size: o.Size, Modified: o.ModifiedNanos, Version: r.name[:n]}
	if len(s.files) > 0 {
		r.object.Inode, r.object.Changed = s.files[sample.Object].Inode, s.files[sample.Object].Changed
	}
	if r.part = o.Part; r.part != "" {
		r.object.Size = o.Whole
	}
	return nil
}

// readError is the error of a store about a sample. What changed makes the next Open scan: directories do not tell
// when a file in them is written.
func (s *Snapshot) readError(sample *Sample, err error) error {
	var changed *store.ChangedError
	if !errors.As(err, &changed) {
		return err
	}
	s.forget.Do(s.cache.remove)
	what := changed.What
	if s.form&manifest.Members != 0 {
		what = "lies in " + changed.Name + ", which " + what
	}
	return &ChangedError{Path: string(sample.Key), What: what, Listed: s.listed, Shipped: s.shipped}
}
