package pipeline

import (
	"fmt"
	"slices"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/sidecar"
)

// Index says where indexes of pictures are kept, and which. An index is made of a picture's bytes the first time it is decoded; from then on
// what lies outside its crops is skipped. It changes no byte and no verdict, so it is no part of a plan. The zero value works.
type Index struct {
	// Dir keeps the index files. Default: feedwater/index in the user's cache directory.
	Dir string
	// MaxBytes is what all files in Dir may take. Default 4 GiB.
	MaxBytes int64
	// Interval is how many blocks of 8 columns lie between two places that decoding can start at: fewer skip more and take more bytes. Default 8.
	Interval int
	// Trouble is told why no more is kept of a data set: the limit, a full disk, a folder that cannot be written. It must not block. Default:
	// nobody is told.
	Trouble func(error)
	// Hold is told by how many bytes the memory grows that open indexes hold, negative where it is given back. It must not block. Default:
	// nobody is told.
	Hold func(bytes int64)
}

// MaxIndexInterval is the largest Index.Interval.
const MaxIndexInterval = codec.MaxIndexInterval

func (x Index) withDefaults() Index {
	if x.Interval <= 0 {
		x.Interval = 8
	}
	if x.Trouble == nil {
		x.Trouble = func(error) {}
	}
	return x
}

// open finds the indexes of a data set that decoders of these revisions made: those of another decoder are none.
func (x *Index) open(fingerprint string, samples int, revisions revision.Set) (*sidecar.Store, error) {
	decoder := revisions.OfFormat("jpeg") // no other format has an index
	name := fmt.Sprintf("%s by %v", fingerprint, decoder)
	return sidecar.Open(name, samples, sidecar.Options{Dir: x.Dir, MaxBytes: x.MaxBytes, Trouble: x.Trouble, Hold: x.Hold})
}

// indexes are the stores of the data sets that jobs were prepared for. Jobs go on without an index when theirs is closed.
type indexes struct {
	index     *Index // nil: none are kept; never changed
	revisions revision.Set

	mu     sync.Mutex
	stores []namedStore // used last comes last
}

type namedStore struct {
	fingerprint string
	*sidecar.Store
}

// maxStores is how many data sets' indexes are open at once.
const maxStores = 16

// of returns the store of a data set, nil if there is none.
func (x *indexes) of(fingerprint string, samples int) *sidecar.Store {
	if x.index == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.stores, func(s namedStore) bool { return s.fingerprint == fingerprint }); i >= 0 {
		s := x.stores[i]
		x.stores = append(slices.Delete(x.stores, i, i+1), s)
		return s.Store
	}
	s, err := x.index.open(fingerprint, samples, x.revisions)
	if err != nil {
		x.index.Trouble(err)
		return nil
	}
	if len(x.stores) == maxStores {
		x.stores[0].Close()
		x.stores = slices.Delete(x.stores, 0, 1)
	}
	x.stores = append(x.stores, namedStore{fingerprint, s})
	return s
}

// close closes all stores. No job is prepared any more.
func (x *indexes) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.stores {
		s.Close()
	}
	x.stores = nil
}

// indexing is what a decoder has of the index of the file at hand.
type indexing struct {
	found, made []byte
	making      bool
}

// lookUp readies the codec for a sample's file: with its index, or to make one.
func (d *decoder) lookUp(j *Job, sample uint64, file []byte) {
	x := &d.indexing
	x.making = false
	if j.index == nil {
		return
	}
	x.found, x.making = j.index.Find(int(sample), file, x.found)
	interval := 0
	if x.making {
		interval = j.p.indexes.index.Interval
	}
	d.codec.UseIndex(x.found, interval)
}

// keep keeps the index that was made while a sample was decoded.
func (d *decoder) keep(j *Job, sample uint64, file []byte) {
	x := &d.indexing
	if x.making {
		x.made = d.codec.AppendIndex(x.made[:0])
		j.index.Put(int(sample), file, x.made)
	}
}
