package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// IndexOptions says where indexes of pictures are kept, and which. An index is made of a picture's bytes the first time
// it is decoded; from then on what lies outside its crops is skipped. It changes no byte and no verdict, so it is no
// part of a plan. The zero value works.
type IndexOptions struct {
	// Dir keeps the index files. Default: feedwater/index in the user's cache directory.
	Dir string
	// MaxBytes is what all files in Dir may take. Default 4 GiB.
	MaxBytes int64
	// CopyBytes is what the copies of progressive JPEG and lossy WebP files may take beside that, which are about as
	// large as the files. Those that are there stay and are used: nothing makes room for others. Default 0: none are made.
	CopyBytes int64
	// Interval is how many blocks of 8 columns lie between two places that decoding can start at: fewer skip more and
	// take more bytes. Default 8.
	Interval int
	// Counts, if set, counts pictures by what index they have.
	Counts *IndexCounts
	// Trouble is told why no more is kept of a data set: the limit, a full disk, a folder that cannot be written. It
	// must not block. Default: nobody is told.
	Trouble func(error)
	// Hold is told by how many bytes the memory grows that open indexes hold, negative where it is given back. It must
	// not block. Default: nobody is told.
	Hold func(bytes int64)
}

// IndexUse is how many pictures whose files were read had what index, or had to be decoded no more. Hits, Copies, Misses
// and Kept add up to all of them: those of broken files, and those that stand in for them, too. Where no index is kept,
// or its storage does not answer, Kept alone is counted.
type IndexUse struct {
	// Hits had an index that is no copy, Copies had a copy, Misses none.
	Hits, Copies, Misses int64
	// MissingCopies are those of Hits and Misses that were decoded without a copy though files like theirs have one, and of
	// which none was made on the way: there was no room for it. MissingCopyBytes is what their files have.
	MissingCopies, MissingCopyBytes int64
	// MadeCopies are those of Hits and Misses of which a copy was made on the way, which takes time once.
	MadeCopies int64
	// Kept are those whose pixels were kept, so that nothing was decoded, and no index looked for.
	Kept int64
}

// Decoded is how many of the pictures that are counted had to be decoded.
func (u *IndexUse) Decoded() int64 { return u.Hits + u.Copies + u.Misses }

// IndexCounts counts pictures whose files were read, as IndexUse does. Many goroutines may use it at once;
// nil counts none.
type IndexCounts struct{ counts [countedKinds]atomic.Int64 }

const (
	countedHits = iota
	countedCopies
	countedMisses
	countedMissing
	countedMissingBytes
	countedMade
	countedKept
	countedKinds
)

// Use is all counts.
func (c *IndexCounts) Use() IndexUse {
	return IndexUse{c.Hits(), c.Copies(), c.Misses(), c.MissingCopies(), c.of(countedMissingBytes), c.MadeCopies(), c.of(countedKept)}
}

// Hits is how many had an index that is no copy.
func (c *IndexCounts) Hits() int64 { return c.of(countedHits) }

// Copies is how many had a copy.
func (c *IndexCounts) Copies() int64 { return c.of(countedCopies) }

// Misses is how many had no index.
func (c *IndexCounts) Misses() int64 { return c.of(countedMisses) }

// MissingCopies is how many could have had a copy; see IndexUse.
func (c *IndexCounts) MissingCopies() int64 { return c.of(countedMissing) }

// MadeCopies is of how many a copy was made on the way.
func (c *IndexCounts) MadeCopies() int64 { return c.of(countedMade) }

func (c *IndexCounts) of(kind int) int64 {
	if c == nil {
		return 0
	}
	return c.counts[kind].Load()
}

// count counts a picture whose index is data, empty: none.
func (c *IndexCounts) count(data []byte) {
	if c == nil {
		return
	}
	kind := countedHits
	switch {
	case len(data) == 0:
		kind = countedMisses
	case codec.IsCopy(data):
		kind = countedCopies
	}
	c.counts[kind].Add(1)
}

// countWithoutCopy counts a picture of a file of so many bytes that could have had a copy, which is made now or not.
func (c *IndexCounts) countWithoutCopy(bytes int, made bool) {
	if c == nil {
		return
	}
	if made {
		c.counts[countedMade].Add(1)
		return
	}
	c.counts[countedMissing].Add(1)
	c.counts[countedMissingBytes].Add(int64(bytes))
}

// countKept counts a picture whose pixels were kept.
func (c *IndexCounts) countKept() {
	if c != nil {
		c.counts[countedKept].Add(1)
	}
}

// MaxIndexInterval is the largest IndexOptions.Interval.
const MaxIndexInterval = codec.MaxIndexInterval

func (x IndexOptions) withDefaults() IndexOptions {
	if x.Interval <= 0 {
		x.Interval = 8
	}
	if x.Trouble == nil {
		x.Trouble = func(error) {}
	}
	return x
}

// indexStores are the stores of the data sets that jobs were prepared for. Jobs go on without an index when theirs is
// closed.
type indexStores struct {
	index     *IndexOptions // nil: none are kept; never changed
	revisions revision.Set
	root      *bulkhead.Root

	most int64 // bytes that stores hold together

	running sync.WaitGroup // openings, and closings of those that made room

	mu     sync.Mutex
	stores []*namedStore // used last comes last
	copies *sharedCopies // nil: no store was opened
}

// namedStore is the store of a data set; nil where it could not be opened. It is there when ready is closed.
type namedStore struct {
	fingerprint string
	samples     int
	generation  uint64 // of the storage, that it is opened in
	copies      *sharedCopies
	ready       chan struct{}
	*records
}

// now is the store once it is ready; nil: it is not, or could not be opened.
func (s *namedStore) now() *records {
	select {
	case <-s.ready:
		return s.records
	default:
		return nil
	}
}

// maxStoreBytes is what the stores that are open at once come to hold in memory together.
const maxStoreBytes = 256 << 20

// ErrManyIndexes is told to IndexOptions.Trouble when jobs were prepared for data sets of more pictures than have their
// indexes open at once.
var ErrManyIndexes = fmt.Errorf("the indexes of %d million pictures are open, and no more are at once: jobs of the data set used longest ago go on without its index",
	maxStoreBytes/imageindex.HeldBytes(1_000_000))

// keepIn has indexes kept.
func (x *indexStores) keepIn(index IndexOptions, revisions revision.Set, roots *bulkhead.Roots) {
	x.index, x.revisions, x.most = &index, revisions, maxStoreBytes
	x.root = roots.Of(index.folderName())
}

// folderName is Dir, or what stands for it.
func (x *IndexOptions) folderName() string {
	if x.Dir != "" {
		return x.Dir
	}
	dir, _ := imageindex.DefaultDir() // where there is none, opening says so
	return dir
}

// openWithin is how long a job waits for its index. It begins without one that takes longer, and goes on with it.
const openWithin = time.Second

// storeOf returns the store of a data set, which may not be ready yet; nil: none is kept.
func (x *indexStores) storeOf(fingerprint string, samples int) *namedStore {
	if x.index == nil {
		return nil
	}
	s := x.findStore(fingerprint, samples)
	timeout := time.NewTimer(openWithin)
	defer timeout.Stop()
	select {
	case <-s.ready:
	case <-timeout.C:
	}
	return s
}

// findAnew looks for the index of a file with nothing of the store that is open. The error is none of what it finds.
func (x *indexStores) findAnew(data *dataset.Snapshot, i int, file []byte) error {
	copies, err := x.index.openCopies(x.revisions)
	if err != nil {
		return err
	}
	defer copies.Abandon()
	s, err := x.index.openRecords(data.Fingerprint(), data.Len(), x.revisions, copies)
	if err != nil {
		return err
	}
	_, _ = s.Find(i, file, nil) // that it returns is what is asked
	s.Abandon()
	return nil
}

// indexNow is the store of a job's data set; nil: none is kept, or it is not ready. When its storage has come back after
// it did not answer the store is opened anew, by one of those who ask; meanwhile the others go on without.
func (j *Job) indexNow() *records {
	store := j.index.Load()
	if store == nil {
		return nil
	}
	generation := j.p.indexes.root.Generation()
	if store.generation == generation {
		return store.now()
	}
	opening := &namedStore{generation: generation}
	if !j.index.CompareAndSwap(store, opening) {
		return nil
	}
	anew := j.p.indexes.storeOf(j.snapshot.Fingerprint(), j.snapshot.Len())
	j.index.CompareAndSwap(opening, anew)
	return anew.now()
}

// findStore returns the store of a data set, which may be about to be opened. Nobody waits for a disk here.
func (x *indexStores) findStore(fingerprint string, samples int) *namedStore {
	generation := x.root.Generation()
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.stores, func(s *namedStore) bool { return s.fingerprint == fingerprint }); i >= 0 {
		s := x.stores[i]
		x.stores = slices.Delete(x.stores, i, i+1)
		if s.generation == generation {
			x.stores = append(x.stores, s)
			return s
		}
		x.running.Go(func() { // what it has open may hang for ever
			if <-s.ready; s.records != nil {
				s.Abandon()
			}
		})
	}
	x.makeRoom(heldBytes(samples))
	s := &namedStore{fingerprint: fingerprint, samples: samples, generation: generation, copies: x.copiesIn(generation), ready: make(chan struct{})}
	x.stores = append(x.stores, s)
	x.running.Go(func() { x.openStore(s) })
	return s
}

// copiesIn are the copies that stores of a generation share; those of an earlier one are left. mu is held.
func (x *indexStores) copiesIn(generation uint64) *sharedCopies {
	if x.copies == nil || x.copies.generation != generation {
		x.copies.leave()
		x.copies = &sharedCopies{generation: generation}
	}
	return x.copies
}

// makeRoom has the stores that were used longest ago make room for another one of so many bytes. One alone may be
// larger. mu is held.
func (x *indexStores) makeRoom(bytes int64) {
	for _, s := range x.stores {
		bytes += heldBytes(s.samples)
	}
	for bytes > x.most && len(x.stores) > 0 {
		oldest := x.stores[0]
		x.stores = slices.Delete(x.stores, 0, 1)
		bytes -= heldBytes(oldest.samples)
		x.running.Go(func() {
			x.index.Trouble(ErrManyIndexes)
			x.shutStore(oldest)
		})
	}
}

// openStore opens a store.
func (x *indexStores) openStore(s *namedStore) {
	defer close(s.ready)
	open := func(func()) (*records, error) {
		copies, err := s.copies.openOnce(func() (*copyStore, error) { return x.index.openCopies(x.revisions) })
		if err != nil {
			return nil, err
		}
		return x.index.openRecords(s.fingerprint, s.samples, x.revisions, copies)
	}
	var err error
	if s.records, err = bulkhead.Do(context.Background(), x.root, "open the index", open, (*records).Close); err == nil {
		return
	}
	s.records = nil
	x.mu.Lock()
	x.stores = slices.DeleteFunc(x.stores, func(other *namedStore) bool { return other == s }) // the next job tries again
	if x.copies == s.copies && s.copies.failed() {
		x.copies = nil
	}
	x.mu.Unlock()
	x.index.Trouble(err)
}

// shutStore closes a store. Where its storage does not answer its memory is given back all the same, and what was
// gathered is lost.
func (x *indexStores) shutStore(s *namedStore) {
	<-s.ready
	if s.records != nil {
		x.shut(s.Close, s.Abandon)
	}
}

// shut closes what keeps files in the folder of indexes, or abandons it.
func (x *indexStores) shut(shut, abandon func()) {
	if err := closeStore(context.Background(), x.root, shut, x.index.folderName()); err != nil {
		abandon()
		x.index.Trouble(err)
	}
}

// closeStore closes what keeps files in a folder. The error is a *bulkhead.HungError or that of ctx.
func closeStore(ctx context.Context, root *bulkhead.Root, closeAll func(), folder string) error {
	shut := func(func()) (struct{}, error) { closeAll(); return struct{}{}, nil }
	_, err := bulkhead.DoOnce(ctx, root, "write the index", shut, nil, func() func() error {
		return func() error { return imageindex.Probe(folder) }
	})
	return err
}

// closeStores closes all stores. No job is prepared any more.
func (x *indexStores) closeStores() {
	x.mu.Lock()
	all, copies := x.stores, x.copies
	x.stores, x.copies = nil, nil
	x.mu.Unlock()
	for _, s := range all {
		x.shutStore(s)
	}
	x.running.Wait()
	if cache := copies.now(); cache != nil {
		x.shut(cache.Close, copies.leave)
	}
	copies.leave()
}

// fileIndex is what a decoder has of the index of the file at hand.
type fileIndex struct {
	made   []byte
	wanted recording
}

// useIndex readies the codec for the file that a worker has read: with its index, or to make one.
func (d *decoder) useIndex(j *Job, k *worker) {
	d.wanted = k.making
	if k.store == nil {
		return
	}
	interval := 0
	if d.wanted.any() {
		interval = j.p.indexes.index.Interval
	}
	d.codec.RecordCopies(d.wanted.copies)
	d.codec.UseIndex(k.found, interval)
}

// countWithoutCopy counts the parsed file where it is decoded without a copy that it could have.
func (d *decoder) countWithoutCopy(j *Job, k *worker) {
	if k.store != nil && d.codec.LacksCopy() {
		j.p.indexes.index.Counts.countWithoutCopy(len(k.file), k.making.copies)
		k.want.index.countWithoutCopy(len(k.file), k.making.copies)
	}
}

// keepIndex keeps the index that was made while a sample was decoded, in the store that was asked for it before.
func (d *decoder) keepIndex(store *records, sample uint64, file []byte) {
	x := &d.fileIndex
	if x.wanted.any() {
		x.made = d.codec.AppendIndex(x.made[:0])
		store.Put(int(sample), file, x.made, x.wanted)
	}
}
