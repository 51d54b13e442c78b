package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// records are the stores of one data set: of small indexes, and of the copies that some files have for an index, which
// have a share of the disk to themselves.
type records struct {
	small  *imageindex.Cache
	copies *imageindex.Cache
}

// recording is which stores want to know what is made of a file on the way.
type recording struct{ small, copies bool }

func (w recording) any() bool { return w.small || w.copies }

// copiesFolder lies in the folder of the indexes.
const copiesFolder = "copies"

// openRecords finds the indexes of a data set that decoders of these revisions made: those of another decoder are none.
func (x *IndexOptions) openRecords(fingerprint string, samples int, revisions revision.Set) (*records, error) {
	name := fingerprint
	for _, format := range imageformat.All {
		if format.Indexed {
			name += fmt.Sprintf(" by %v", revisions.OfFormat(format.Name))
		}
	}
	small, err := imageindex.Open(name, samples, imageindex.Options{Dir: x.Dir, MaxBytes: x.MaxBytes, Trouble: x.Trouble, Hold: x.Hold})
	if err != nil {
		return nil, err
	}
	copies, err := imageindex.Open(name, samples, x.copiesOptions())
	if err != nil {
		small.Close()
		return nil, err
	}
	return &records{small, copies}, nil
}

// copiesOptions are those of the store of copies. Without a share those that are there, or come to be, are used.
func (x *IndexOptions) copiesOptions() imageindex.Options {
	return imageindex.Options{
		Dir: filepath.Join(x.folderName(), copiesFolder), MaxBytes: x.CopyBytes, Steady: true, ReadOnly: x.CopyBytes <= 0, Hold: x.Hold,
		Trouble: func(err error) {
			if errors.Is(err, imageindex.ErrFull) {
				err = fmt.Errorf("%w: %w", ErrCopiesFull, err)
			}
			x.Trouble(err)
		},
	}
}

// ErrCopiesFull is told to IndexOptions.Trouble where a file has no copy since there is no room for one.
var ErrCopiesFull = errors.New("there is no room for more copies")

// heldBytes is how many bytes of memory the stores of so many samples hold while they gather nothing.
func (x *IndexOptions) heldBytes(samples int) int64 {
	n := imageindex.HeldBytes(samples)
	if x.CopyBytes > 0 {
		n *= 2
	}
	return n
}

// Find copies the index of a sample over buf if there is one that was made of these bytes of its file, the copy where
// there is one. Else it is empty. It is told what is worth making.
func (r *records) Find(sample int, file, buf []byte) (data []byte, wanted recording) {
	if data, wanted.copies = r.copies.Find(sample, file, buf); len(data) > 0 {
		return data, wanted
	}
	data, wanted.small = r.small.Find(sample, file, data)
	return data, wanted
}

// Put keeps an index in the store that it is for, and tells the other of those that want to know that there is none for
// it; an empty one is for neither. A copy that is not kept leaves the file to the other store.
func (r *records) Put(sample int, file, data []byte, wanted recording) {
	small, copies := splitRecord(data)
	if wanted.copies && !r.copies.Put(sample, file, copies) && len(copies) > 0 {
		return
	}
	if wanted.small {
		r.small.Put(sample, file, small)
	}
}

// PutAll is Put that waits for the disk, until ctx ends. It reports whether the store knows that the index is for, that
// of small ones if it is empty.
func (r *records) PutAll(ctx context.Context, sample int, file, data []byte, wanted recording) bool {
	small, copies := splitRecord(data)
	if wanted.copies && !r.copies.PutAll(ctx, sample, file, copies) && len(copies) > 0 {
		return false
	}
	known := !wanted.small || r.small.PutAll(ctx, sample, file, small)
	return known || len(copies) > 0
}

// splitRecord is what each store has of an index.
func splitRecord(data []byte) (small, copies []byte) {
	if codec.IsCopy(data) {
		return nil, data
	}
	return data, nil
}

// all calls f for each store.
func (r *records) all(f func(*imageindex.Cache)) {
	f(r.small)
	f(r.copies)
}

// Close closes the stores.
func (r *records) Close() { r.all((*imageindex.Cache).Close) }

// Abandon abandons the stores.
func (r *records) Abandon() { r.all((*imageindex.Cache).Abandon) }

// Lost is how many records were kept that no file has, and their bytes.
func (r *records) Lost() (n int, bytes int64) {
	r.all(func(s *imageindex.Cache) {
		k, b := s.Lost()
		n, bytes = n+k, bytes+b
	})
	return n, bytes
}

// DiskBytes is what the files of the data set take.
func (r *records) DiskBytes() (n int64) {
	r.all(func(s *imageindex.Cache) { n += s.DiskBytes() })
	return n
}
