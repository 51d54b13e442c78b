package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// records are the stores of one data set: of small indexes, found by its samples, and of the copies that some files have
// for an index, which have a share of the disk to themselves. Copies are found by their files' bytes, and shared by all
// data sets: whoever opened them closes them.
type records struct {
	small   *imageindex.Cache
	copies  *copyStore
	without samples // those that can have no copy
}

// samples is a set of a data set's samples, which grows; many goroutines may use it at once.
type samples []atomic.Uint64

func newSamples(count int) samples { return make(samples, (count+63)/64) }

func (s samples) has(i int) bool { return s[i/64].Load()>>(i%64)&1 != 0 }
func (s samples) add(i int)      { s[i/64].Or(1 << (i % 64)) }

// recording is which stores want to know what is made of a file on the way.
type recording struct{ small, copies bool }

func (w recording) any() bool { return w.small || w.copies }

// decodedBy names decoders of these revisions: what another decoder made is not found.
func decodedBy(revisions revision.Set) (name string) {
	for _, format := range imageformat.All {
		if format.Indexed {
			name += fmt.Sprintf(" by %v", revisions.OfFormat(format.Name))
		}
	}
	return name
}

// openRecords finds the indexes of a data set.
func (x *IndexOptions) openRecords(fingerprint string, count int, revisions revision.Set, copies *copyStore) (*records, error) {
	small, err := imageindex.Open(fingerprint+decodedBy(revisions), count, imageindex.Options{Dir: x.Dir, MaxBytes: x.MaxBytes, Trouble: x.Trouble, Hold: x.Hold})
	if err != nil {
		return nil, err
	}
	return &records{small, copies, newSamples(count)}, nil
}

// heldBytes is how many bytes of memory the records of so many samples hold while they gather nothing, without copies.
func heldBytes(samples int) int64 { return imageindex.HeldBytes(samples) + int64(samples)/8 }

// Find copies the index of a sample over buf if there is one that was made of these bytes of its file, the copy where
// there is one. Else it is empty. It is told what is worth making.
func (r *records) Find(sample int, file, buf []byte) (data []byte, wanted recording) {
	digest := imageindex.Digest(file)
	if data, wanted.copies = r.copies.Find(file, digest, buf); len(data) > 0 {
		return data, wanted
	}
	wanted.copies = wanted.copies && !r.without.has(sample)
	data, wanted.small = r.small.Find(sample, digest, data)
	return data, wanted
}

// Put keeps an index in the store that it is for, and notes what is not worth making again. A copy that is not kept
// leaves the file to the other store.
func (r *records) Put(sample int, file, data []byte, wanted recording) {
	digest := imageindex.Digest(file)
	r.put(sample, file, data, wanted, func(s *imageindex.Cache, data []byte) bool { return s.Put(sample, digest, data) })
}

// PutAll is Put that waits for the disk, until ctx ends. It reports whether the store knows that the index is for, that
// of small ones if it is empty.
func (r *records) PutAll(ctx context.Context, sample int, file, data []byte, wanted recording) bool {
	digest := imageindex.Digest(file)
	return r.put(sample, file, data, wanted, func(s *imageindex.Cache, data []byte) bool { return s.PutAll(ctx, sample, digest, data) })
}

// put is Put by one of a store's.
func (r *records) put(sample int, file, data []byte, wanted recording, put func(*imageindex.Cache, []byte) bool) bool {
	if codec.IsCopy(data) {
		sealed := r.copies.sealCopy(data, file)
		if wanted.copies && (sealed == nil || !put(r.copies.Cache, sealed)) {
			return false
		}
		if wanted.small {
			put(r.small, nil)
		}
		return true
	}
	if wanted.copies {
		r.without.add(sample)
	}
	return !wanted.small || put(r.small, data)
}

// Close closes the store of small indexes.
func (r *records) Close() { r.small.Close() }

// Abandon abandons it.
func (r *records) Abandon() { r.small.Abandon() }
