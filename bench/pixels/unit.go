package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/codec"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/imageindex"
	"github.com/feedwater-io/feedwater/pipeline/order"
	"github.com/feedwater-io/feedwater/pipeline/transform"
)

// unit is a folder in memory and who makes its pictures.
type unit struct {
	snapshot *dataset.Snapshot
	files    [][]byte
	chain    transform.Chain
	index    *imageindex.Cache // nil: none
	fresh    string            // folder for indexes that begin empty; empty: index stays
	workers  []*worker
}

// seed of all draws.
const seed = 17

// interval of the indexes that are made here, the default of all others.
const interval = 8

// open reads the folder. The unit is to be closed where there is no error.
func open(ctx context.Context, o *options) (*unit, error) {
	u := &unit{}
	if err := u.open(ctx, o); err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

func (u *unit) open(ctx context.Context, o *options) (err error) {
	if u.snapshot, err = dataset.Open(ctx, o.data, dataset.Options{}); err != nil {
		return err
	}
	u.files = make([][]byte, u.snapshot.Len())
	for i := range u.files {
		if u.files[i], err = u.snapshot.Read(ctx, i, nil); err != nil {
			return err
		}
	}
	var ops []json.RawMessage
	if err := json.Unmarshal([]byte(o.transforms), &ops); err != nil {
		return fmt.Errorf("-transforms: %w", err)
	}
	if u.chain, err = transform.Parse(ops); err != nil {
		return err
	}
	if u.index, err = u.store(o.index); err != nil {
		return err
	}
	if o.first {
		if u.fresh, err = os.MkdirTemp("", "pixels"); err != nil {
			return err
		}
	}
	return u.hire(o.threads)
}

// store is the index that is kept in a folder, nil for none.
func (u *unit) store(dir string) (*imageindex.Cache, error) {
	if dir == "" {
		return nil, nil
	}
	return imageindex.Open(u.snapshot.Fingerprint(), u.snapshot.Len(), imageindex.Options{Dir: dir})
}

// hire makes the workers.
func (u *unit) hire(n int) error {
	p, err := pipeline.Open(pipeline.Options{Workers: 1, Readers: 1})
	if err != nil {
		return err
	}
	level := p.Kernels()
	p.Close()
	for range n {
		runner, err := transform.NewRunner(u.chain, transform.Options{Seed: seed, Level: level})
		if err != nil {
			return err
		}
		decoder := codec.NewDecoder(level)
		decoder.RecordCopies(true)
		u.workers = append(u.workers, &worker{unit: u, codec: decoder, runner: runner})
	}
	return nil
}

func (u *unit) close() {
	if u.index != nil {
		u.index.Close()
	}
	if u.snapshot != nil {
		u.snapshot.Close()
	}
	if u.fresh != "" {
		_ = os.RemoveAll(u.fresh)
	}
}

// check makes an epoch and returns the checksums of its pictures.
func (u *unit) check(epoch uint32) ([]uint32, error) {
	w, crcs := u.workers[0], make([]uint32, len(u.files))
	for i := range u.files {
		pixels, err := w.make(i, epoch)
		if err != nil {
			return nil, err
		}
		crcs[i] = crc32.ChecksumIEEE(pixels)
	}
	return crcs, nil
}

// spent is what a measurement took, in seconds.
type spent struct {
	CPU    float64 `json:"cpu"`
	Wall   float64 `json:"wall"`
	Images int     `json:"images"`
}

// time makes so many epochs, each picture by whoever is free.
func (u *unit) time(epoch uint32, epochs int) (spent, error) {
	if err := u.forget(epoch); err != nil {
		return spent{}, err
	}
	images := epochs * len(u.files)
	var next atomic.Int64
	var group errgroup.Group
	begun, cpu := time.Now(), processTime()
	for _, w := range u.workers {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= images {
					return nil
				}
				if _, err := w.make(n%len(u.files), epoch+uint32(n/len(u.files))); err != nil {
					return err
				}
			}
		})
	}
	err := group.Wait()
	return spent{(processTime() - cpu).Seconds(), time.Since(begun).Seconds(), images}, err
}

// forget begins with an empty index, where that is what is measured.
func (u *unit) forget(epoch uint32) (err error) {
	if u.fresh == "" {
		return nil
	}
	if u.index != nil {
		u.index.Close()
	}
	u.index, err = u.store(filepath.Join(u.fresh, fmt.Sprint(epoch)))
	return err
}

// processTime is the CPU time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // of arguments that are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// worker is what one core needs. It is not for concurrent use.
type worker struct {
	*unit
	codec       *codec.Decoder
	runner      *transform.Runner
	found, made []byte
	batch       []byte
	next        int // place in batch
}

// batchSize is how many pictures are written behind each other before the first one is overwritten, so that they leave the caches.
const batchSize = 128

// make makes picture i of an epoch. Its pixels are valid until batchSize others were made.
func (w *worker) make(i int, epoch uint32) ([]byte, error) {
	file, making := w.files[i], false
	if w.index != nil {
		every := 0
		if w.found, making = w.index.Find(i, imageindex.Digest(file), w.found); making {
			every = interval
		}
		w.codec.UseIndex(w.found, every)
	}
	width, height, err := w.codec.Parse(file, codec.DefaultLimits())
	if err == nil {
		width, height, err = w.runner.Begin(width, height, order.Sample{Epoch: epoch, Index: uint32(i)})
	}
	if err != nil {
		return nil, err
	}
	pixels := w.room(3 * width * height)
	if err := w.runner.Run(w.codec, pixels, 3*width); err != nil {
		return nil, err
	}
	if making {
		w.made = w.codec.AppendIndex(w.made[:0])
		w.index.Put(i, imageindex.Digest(file), w.made)
	}
	return pixels, nil
}

// room is the next place in the batch.
func (w *worker) room(n int) []byte {
	if len(w.batch) < batchSize*n {
		w.batch, w.next = make([]byte, batchSize*n), 0
	}
	w.next = (w.next + 1) % batchSize
	return w.batch[w.next*n:][:n:n]
}
