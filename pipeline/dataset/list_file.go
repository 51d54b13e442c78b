package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// listFile is a list while it is written: to a file in the cache's folder, from where that fails to one in the private
// folder, and where that fails too to the memory of this process. What was written before moves along.
type listFile struct {
	ctx     context.Context
	cache   *cache
	file    *os.File // nil: in data
	dir     string   // of the file
	limit   int64    // of all lists in dir
	data    []byte
	written int64
	errs    []error // why it is not kept in the places before
}

// lostError says that what was written of a list cannot be read again.
type lostError struct{ cause error }

func (e *lostError) Error() string { return fmt.Sprintf("half a list is lost: %v", e.cause) }

// begin begins a list, unless who wanted it has gone; whoever calls it calls commit or discard.
func (c *cache) begin(ctx context.Context) (*listFile, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	l := &listFile{ctx: ctx, cache: c}
	return l, l.open(c.dir, c.none, c.limit)
}

// avoid uses the cache's folder no more.
func (c *cache) avoid(cause error) { c.dir, c.none = "", cause }

// open begins a file in a folder, whose lists may take limit bytes in all, or in the next place; none is why there is
// no folder.
func (l *listFile) open(dir string, none error, limit int64) error {
	if none != nil {
		return l.move(none)
	}
	var err error
	l.dir, l.limit = dir, limit
	l.file, err = onFolder(l.ctx, l.cache, dir, "begin the list", func() (*os.File, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		l.cache.sweep(dir)
		return l.cache.create(dir)
	}, drop)
	if err != nil {
		return l.move(err)
	}
	return nil
}

// drop removes a file that is no list. Nil is none.
func drop(f *os.File) {
	if f != nil {
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
}

// Write implements io.Writer.
func (l *listFile) Write(p []byte) (int, error) {
	for l.file != nil {
		err := l.write(p)
		if err == nil {
			l.written += int64(len(p))
			return len(p), nil
		}
		if err := l.move(err); err != nil {
			return 0, err
		}
	}
	l.data = append(l.data, p...)
	l.written += int64(len(p))
	return len(p), nil
}

// write writes to the file. A call that hangs has a copy.
func (l *listFile) write(p []byte) error {
	if err := l.fits(l.written + int64(len(p))); err != nil {
		return err
	}
	f, at := l.file, l.written
	if l.cache.call != nil {
		p = slices.Clone(p)
	}
	_, err := onFolder(l.ctx, l.cache, l.dir, "write the list", func() (int, error) { return f.WriteAt(p, at) }, nil)
	return err
}

// fits is the error of a list of n bytes that is larger than all may be.
func (l *listFile) fits(n int64) error {
	if n > l.limit {
		return fmt.Errorf("%w: %d bytes of %d", errNoRoom, n, l.limit)
	}
	return nil
}

// move goes on in the next place, since this one has failed. The error is a *lostError, or that of ctx.
func (l *listFile) move(cause error) error {
	if err := l.ctx.Err(); err != nil {
		l.discard()
		return err
	}
	before, err := l.readBack()
	l.discard()
	if err != nil {
		return &lostError{cause: errors.Join(cause, err)}
	}
	l.errs, l.written = append(l.errs, cause), 0
	if len(l.errs) == 1 {
		private, none := l.cache.private(true)
		if err := l.open(private, none, min(l.cache.limit, privateLimit(private))); err != nil {
			return err
		}
	}
	if len(before) > 0 {
		_, err = l.Write(before)
	}
	return err
}

// readBack reads what was written.
func (l *listFile) readBack() ([]byte, error) {
	f, n := l.file, l.written
	if f == nil || n == 0 {
		return nil, nil
	}
	return onFolder(l.ctx, l.cache, l.dir, "read the list", func() ([]byte, error) {
		b := make([]byte, n)
		_, err := io.ReadFull(io.NewSectionReader(f, 0, n), b)
		return b, err
	}, nil)
}

// discard forgets the file.
func (l *listFile) discard() {
	if f := l.file; f != nil {
		_, _ = onFolder(briefly(), l.cache, l.dir, "drop the list", func() (struct{}, error) {
			drop(f)
			return struct{}{}, nil
		}, nil)
	}
	l.file = nil
}

// commit keeps the list and returns it mapped, or as it is where no folder takes it. The error is as that of move.
func (l *listFile) commit() (memory, error) {
	for l.file != nil {
		kept, err := l.keep()
		if err == nil {
			inMemory.drop(l.cache.name)
			if len(l.errs) > 0 {
				l.cache.trouble(&KeepError{Folder: l.dir, Cause: l.errs[0]})
			}
			return kept, nil
		}
		if err := l.move(err); err != nil {
			return memory{}, err
		}
	}
	inMemory.put(l.cache.name, l.data)
	l.cache.trouble(&KeepError{Cause: errors.Join(l.errs...)})
	return memory{data: l.data}, nil
}

// keep gives the file its name.
func (l *listFile) keep() (memory, error) {
	if err := l.fits(l.written); err != nil {
		return memory{}, err
	}
	f, dir, n, limit := l.file, l.dir, l.written, l.limit
	kept, err := onFolder(l.ctx, l.cache, dir, "keep the list", func() (memory, error) {
		if err := l.cache.makeRoom(dir, n, limit); err != nil {
			return memory{}, err
		}
		kept, err := mapWhole(f)
		if err == nil {
			err = os.Rename(f.Name(), filepath.Join(dir, l.cache.name))
		}
		if err != nil {
			kept.free()
			return memory{}, err
		}
		return kept, nil
	}, func(m memory) { m.free() })
	if err == nil {
		_ = l.file.Close() // the mapping is all that is needed
		l.file = nil
	}
	return kept, err
}
