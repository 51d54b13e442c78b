package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// memory holds a manifest's bytes.
type memory struct {
	data   []byte
	mapped bool
}

// free gives the memory back.
func (m *memory) free() {
	if m.mapped {
		unmap(m.data)
	}
	*m = memory{}
}

// cache is the place of one data set's manifest. Files in it are never changed, only replaced whole: processes may share it.
type cache struct{ path string } // "" where there is no cache

// unfinished is how the names of files end that are not manifests yet.
const unfinished = ".*.tmp"

func newCache(dir, root string) cache {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return cache{}
		}
		dir = filepath.Join(user, "feedwater", "snapshots")
	}
	key := sha256.Sum256([]byte(root))
	return cache{filepath.Join(dir, hex.EncodeToString(key[:16])+".manifest")}
}

func (c cache) load() (memory, error) {
	f, err := os.OpenFile(c.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO in its place must not make us wait for a writer
	if err != nil {
		return memory{}, err
	}
	defer f.Close()
	return mapWhole(f)
}

func mapWhole(f *os.File) (memory, error) {
	fi, err := f.Stat()
	if err != nil {
		return memory{}, err
	}
	if !fi.Mode().IsRegular() || fi.Size() < headerBytes || fi.Size() != int64(int(fi.Size())) {
		return memory{}, errDamaged
	}
	return mapFile(f, int(fi.Size()))
}

// store keeps a manifest and returns it mapped, or as it is where it cannot be kept.
func (c cache) store(data []byte) memory {
	kept, err := c.write(data)
	if err != nil {
		return memory{data: data}
	}
	return kept
}

func (c cache) write(data []byte) (_ memory, err error) {
	if c.path == "" {
		return memory{}, errors.New("no cache directory")
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return memory{}, err
	}
	c.sweep()
	f, err := c.create()
	if err != nil {
		return memory{}, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return memory{}, errors.Join(err, f.Close())
	}
	kept, err := mapWhole(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		kept.free()
	}
	return kept, err
}

// create makes the file that a manifest is written to.
func (c cache) create() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+unfinished)
}

// sweep removes what killed processes left behind.
func (c cache) sweep() {
	left, _ := filepath.Glob(c.path + unfinished) // the pattern is good, and nothing to sweep is fine
	for _, path := range left {
		if fi, err := os.Stat(path); err == nil && time.Since(fi.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

func (c cache) remove() {
	if c.path != "" {
		_ = os.Remove(c.path) // whoever opens the data set next finds out
	}
}

// current reports whether every directory is the one that was scanned and its times are the same.
func (s *Snapshot) current(ctx context.Context, readers int) bool {
	group, ctx := errgroup.WithContext(ctx)
	m := s.manifest
	for first := range readers {
		group.Go(func() (err error) {
			defer recoverFault(debug.SetPanicOnFault(true), &err)
			for i := first; i < m.dirs(); i += readers {
				if err := s.unchanged(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait() == nil
}

var errStale = errors.New("the directory changed")

// unchanged checks directory i. Its times say nothing when it changed so shortly before the scan that another change, during
// the scan, could have left the same times: file systems count time in steps, the coarsest in steps of 2 s.
func (s *Snapshot) unchanged(ctx context.Context, i int) error {
	const step = 2 * time.Second
	path, then := s.manifest.directory(i)
	if then.changed > s.manifest.scanned-int64(step) {
		return errStale
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	now, err := s.root.stat(path)
	if err != nil {
		return err
	}
	if !now.isStill(then) {
		return errStale
	}
	return nil
}
