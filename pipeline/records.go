package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/imageformat"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// records are the stores of one data set: of small indexes, and of the copies that progressive JPEG files have for an
// index, which have a share of the disk to themselves.
type records struct {
	small  *imageindex.Cache
	copies *imageindex.Cache // nil: none are kept, and there are none
}

// recording is what is to be made of a file on the way.
type recording struct {
	index  bool // its index, of any kind that is kept
	copies bool // if that is a copy too
}

// copiesFolder lies in the folder of the indexes.
const copiesFolder = "progressive"

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
	folder, share := filepath.Join(x.folderName(), copiesFolder), x.ProgressiveBytes
	if share <= 0 {
		if !exists(folder) {
			return &records{small: small}, nil
		}
		share = 1 // those that are there are used, and there is room for no more
	}
	copies, err := imageindex.Open(name, samples, imageindex.Options{Dir: folder, MaxBytes: share, Steady: true, Trouble: x.Trouble, Hold: x.Hold})
	if err != nil {
		small.Close()
		return nil, err
	}
	return &records{small, copies}, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// heldBytes is how many bytes of memory the stores of so many samples hold while they gather nothing.
func (x *IndexOptions) heldBytes(samples int) int64 {
	n := imageindex.HeldBytes(samples)
	if x.ProgressiveBytes > 0 {
		n *= 2
	}
	return n
}

// Find copies the index of a sample over buf if there is one that was made of these bytes of its file. Else it is
// empty, and it is told what is worth making.
func (r *records) Find(sample int, file, buf []byte) ([]byte, recording) {
	data, wanted := r.small.Find(sample, file, buf)
	if len(data) > 0 || r.copies == nil {
		return data, recording{index: wanted}
	}
	data, copies := r.copies.Find(sample, file, data)
	if len(data) > 0 {
		if wanted { // as long as the store of small ones was not told
			r.small.Put(sample, file, nil)
		}
		return data, recording{}
	}
	return data, recording{wanted || copies, copies}
}

// Put keeps an index; an empty one says that there is none.
func (r *records) Put(sample int, file, data []byte) {
	small, copies := splitRecord(data)
	r.small.Put(sample, file, small)
	if r.copies != nil {
		r.copies.Put(sample, file, copies)
	}
}

// PutAll is Put that waits for the disk, until ctx ends. It reports whether the stores know what they were told.
func (r *records) PutAll(ctx context.Context, sample int, file, data []byte) bool {
	small, copies := splitRecord(data)
	if r.copies != nil && len(copies) > 0 {
		r.small.Put(sample, file, nil)
		return r.copies.PutAll(ctx, sample, file, copies)
	}
	if r.copies != nil {
		r.copies.Put(sample, file, nil)
	}
	return r.small.PutAll(ctx, sample, file, small)
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
	if r.copies != nil {
		f(r.copies)
	}
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
