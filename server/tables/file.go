package tables

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tableFile is a list while it is written: to a file in the Store's folder, and from where that fails to one in the
// private folder. What was written before moves along.
type tableFile struct {
	store    *Store
	identity string
	file     file // nil: none
	dir      string
	written  int64
	cause    error // why it is not in the Store's folder; nil: it is
}

// file is one that is being written.
type file interface {
	io.WriteCloser
	Name() string
}

// createTemp begins a file in a folder, which it makes.
func createTemp(dir string) (file, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "*"+unfinished)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// errNoFolder says that the Store has no folder.
var errNoFolder = errors.New("there is no folder for lists of files")

// open begins the file. Its error, as that of all others, is a *KeepError.
func (f *tableFile) open() error {
	dir := f.store.Folder()
	if dir == "" {
		return f.move(errNoFolder)
	}
	if err := f.begin(dir); err != nil {
		return f.move(err)
	}
	return nil
}

func (f *tableFile) begin(dir string) (err error) {
	f.dir = filepath.Join(dir, nameOf(f.identity))
	f.file, err = f.store.create(f.dir)
	return err
}

// Write implements io.Writer.
func (f *tableFile) Write(p []byte) (int, error) {
	for {
		_, err := f.file.Write(p)
		if err == nil {
			f.written += int64(len(p))
			return len(p), nil
		}
		if err := f.move(err); err != nil {
			return 0, err
		}
	}
}

// move goes on in the private folder, since the Store's has failed. Where the private one has, the list is not kept.
func (f *tableFile) move(cause error) error {
	if f.cause != nil {
		return f.fail(cause)
	}
	f.cause = cause
	before := f.file
	defer drop(before)
	f.file = nil
	dir, err := f.store.privateFolder()
	if err == nil {
		err = f.begin(dir)
	}
	if err == nil && before != nil {
		err = f.copyFrom(before.Name())
	}
	if err != nil {
		return f.fail(err)
	}
	return nil
}

// copyFrom copies what was written before. Part of what failed may stand behind it.
func (f *tableFile) copyFrom(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.CopyN(f.file, from, f.written)
	return err
}

// fail tells that no folder takes the list.
func (f *tableFile) fail(err error) error {
	none := &KeepError{Cause: fmt.Errorf("%w; and in its place: %w", f.cause, err)}
	f.store.tell(none)
	return none
}

// commit keeps the whole file by its name, and tells where if that is not the Store's folder.
func (f *tableFile) commit(name string) error {
	for {
		err := f.keep(name)
		if err == nil {
			break
		}
		if err := f.move(err); err != nil {
			return err
		}
	}
	if f.cause != nil {
		f.store.tell(&KeepError{Folder: f.dir, Cause: f.cause})
	}
	return nil
}

func (f *tableFile) keep(name string) error {
	if err := f.store.makeRoom(f.dir, f.identity); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil { // a file server may tell only now that it has no room
		return err
	}
	if err := os.Rename(f.file.Name(), filepath.Join(f.dir, name)); err != nil {
		return err
	}
	f.file = nil
	return nil
}

// discard forgets a file that is not kept.
func (f *tableFile) discard() { drop(f.file) }

func drop(f file) {
	if f != nil {
		_ = f.Close() // it may be closed
		_ = os.Remove(f.Name())
	}
}
