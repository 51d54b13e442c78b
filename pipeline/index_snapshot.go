package pipeline

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Indexed says what IndexSnapshot found.
type Indexed struct {
	// Seen is how many pictures were looked at; of these Made have an index now, Kept had one, None can have none, and
	// Failed could not be read. Those that are missing could not be kept any more. Lost were made and could not be
	// written: they are not among Made.
	Seen, Made, Kept, None, Failed, Lost int
	// Copies is how many of those that were made, or were there, are copies; with CopiesFull there was no room for more.
	Copies     int
	CopiesFull bool
	// FileBytes is the size of all pictures seen, IndexBytes that of their indexes.
	FileBytes, IndexBytes int64
	// DiskBytes is what the files of this data set take in the end: more where several make indexes at once, or with
	// several intervals. CopyBytes is what the copies of all data sets take, which is not in it.
	DiskBytes, CopyBytes int64
	// Failure is why the first of those that failed did.
	Failure error
}

// IndexSnapshot makes the indexes of all pictures ahead of time, workers at once, 0: one per core this process may use.
// An index that is there and has the interval is kept. progress, if set, is told what there is so far after each
// picture; never by two goroutines at once. What was made until ctx ends, or until an index can be kept no more, stays.
// The error is the context's, or says why it could not be kept. Storage that does not answer, of pictures or of the
// index, fails pictures, and keeps nobody for long when ctx has ended.
func IndexSnapshot(ctx context.Context, roots *bulkhead.Roots, s *dataset.Snapshot, index IndexOptions, workers int, progress func(Indexed)) (Indexed, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	level, err := kernel.Best()
	if err != nil {
		return Indexed{}, err
	}
	m := &indexMaker{index: index.withDefaults(), snapshot: s, progress: progress, root: roots.Of(s.Path())}
	m.kept = roots.Of(m.index.folderName())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	m.index.Trouble = func(err error) {
		if !errors.Is(err, ErrCopiesFull) {
			stop(err)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.seen.CopiesFull = true
	}
	if m.store, err = m.openStore(ctx); err != nil {
		return Indexed{}, err
	}
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			(&indexWorker{indexMaker: m, codec: codec.NewDecoder(level)}).indexPictures(ctx)
			return nil
		})
	}
	_ = group.Wait() // they return nil
	err = m.closeStore(ctx)
	cause := context.Cause(ctx) // closing may tell
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.DiskBytes, m.seen.CopyBytes = m.store.small.DiskBytes(), m.store.copies.DiskBytes()
	m.seen.takeLost(m.store.small.Lost())
	lost, bytes := m.store.copies.Lost()
	m.seen.takeLost(lost, bytes)
	m.seen.Copies -= lost
	if cause == nil {
		cause = err
	}
	return m.seen, cause
}

// openStore opens the store.
func (m *indexMaker) openStore(ctx context.Context) (*records, error) {
	open := func(func()) (*records, error) {
		copies, err := m.index.openCopies(revision.Build())
		if err != nil {
			return nil, err
		}
		store, err := m.index.openRecords(m.snapshot.Fingerprint(), m.snapshot.Len(), revision.Build(), copies)
		if err != nil {
			copies.Close()
		}
		return store, err
	}
	return bulkhead.Do(ctx, m.kept, "open the index", open, closeBoth)
}

// closeBoth closes records and the copies that were opened for them alone.
func closeBoth(r *records) {
	r.Close()
	r.copies.Close()
}

// keepWithin is how long what was made may take to be written when ctx has ended.
const keepWithin = 2 * time.Second

// closeStore closes the store.
func (m *indexMaker) closeStore(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), keepWithin)
		defer cancel()
	}
	return closeStore(ctx, m.kept, func() { closeBoth(m.store) }, m.index.folderName())
}

// readPicture reads a picture over buf, which is the worker's no more where the error is a *bulkhead.HungError or the
// context's.
func (m *indexMaker) readPicture(ctx context.Context, i int, buf []byte) ([]byte, error) {
	generation := m.root.Generation()
	read := func(func()) ([]byte, error) { return m.snapshot.ReadIn(ctx, generation, i, buf) }
	return bulkhead.DoOnce(ctx, m.root, "read", read, nil, func() func() error {
		return func() error {
			_, err := m.snapshot.ReadIn(context.WithoutCancel(ctx), generation+1, i, nil)
			return err
		}
	})
}

// indexMaker is one run of IndexSnapshot.
type indexMaker struct {
	index    IndexOptions
	snapshot *dataset.Snapshot
	store    *records
	root     *bulkhead.Root // of the pictures
	kept     *bulkhead.Root // of the index
	next     atomic.Int64
	progress func(Indexed)

	mu   sync.Mutex
	seen Indexed
}

// indexWorker is one of those who make indexes, with buffers of its own.
type indexWorker struct {
	*indexMaker
	codec             *codec.Decoder
	file, found, made []byte
}

// indexPictures takes one picture after the other.
func (w *indexWorker) indexPictures(ctx context.Context) {
	for ctx.Err() == nil {
		i := int(w.next.Add(1)) - 1
		if i >= w.snapshot.Len() {
			return
		}
		var err error
		if w.file, err = w.readPicture(ctx, i, w.file); ctx.Err() != nil {
			return
		}
		if err != nil {
			w.countPicture(func(n *Indexed) { n.addFailure(err) })
			continue
		}
		w.indexPicture(ctx, i)
	}
}

// indexPicture sees to the index of the picture that was read.
func (w *indexWorker) indexPicture(ctx context.Context, i int) {
	var wanted recording
	w.found, wanted = w.store.Find(i, w.file, w.found)
	had := w.found
	if !codec.IsIndexOf(had, w.index.Interval) {
		wanted.small = true
		wanted.copies = wanted.copies || codec.IsCopy(had)
		had = nil
	}
	made := w.makeIndex(ctx, i, had, wanted)
	w.countPicture(func(n *Indexed) {
		n.FileBytes += int64(len(w.file))
		switch {
		case made:
			n.Made++
			n.addIndex(w.made)
		case len(w.found) > 0: // or one of another interval, which stays
			n.Kept++
			n.addIndex(w.found)
		case len(w.made) == 0:
			n.None++
		}
	})
}

// makeIndex makes what is wanted, beside the index that the picture had, empty: none. Where there is no room for a copy it makes the other index. It reports
// whether there is one now that is kept.
func (w *indexWorker) makeIndex(ctx context.Context, i int, had []byte, wanted recording) bool {
	if w.makeWanted(ctx, i, had, wanted) {
		return true
	}
	return codec.IsCopy(w.made) && w.makeWanted(ctx, i, had, recording{small: wanted.small})
}

func (w *indexWorker) makeWanted(ctx context.Context, i int, had []byte, wanted recording) bool {
	w.made = w.made[:0]
	if !wanted.any() {
		return false
	}
	w.codec.RecordCopies(wanted.copies)
	w.codec.UseIndex(had, w.index.Interval)
	if _, _, err := w.codec.Parse(w.file, codec.DefaultLimits()); err == nil {
		w.made = w.codec.AppendIndex(w.made)
	}
	return w.store.PutAll(ctx, i, w.file, w.made, wanted) && len(w.made) > 0
}

// countPicture adds a picture to what was seen.
func (m *indexMaker) countPicture(add func(*Indexed)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.Seen++
	add(&m.seen)
	if m.progress != nil {
		m.progress(m.seen)
	}
}

// takeLost takes what no file has out of what was made.
func (n *Indexed) takeLost(records int, bytes int64) {
	n.Made -= records
	n.Lost += records
	n.IndexBytes -= bytes
}

func (n *Indexed) addIndex(data []byte) {
	n.IndexBytes += int64(len(data))
	if codec.IsCopy(data) {
		n.Copies++
	}
}

func (n *Indexed) addFailure(err error) {
	n.Failed++
	if n.Failure == nil {
		n.Failure = err
	}
}
