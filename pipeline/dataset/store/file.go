package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// Kind is what a name stands for.
type Kind uint8

// The kinds of what lies in a directory.
const (
	KindUnknown Kind = iota // a link, or the file system does not say: Stat tells
	KindFile
	KindFolder
	KindOther // FIFO, socket, device
)

// Attributes of a file or directory. Times are in nanoseconds since 1970; Changed is the time that only the kernel
// sets.
type Attributes struct {
	Kind              Kind
	Size              int64
	Modified, Changed int64
	Device, Inode     uint64
	// Version is as in Object: a file has none.
	Version string
}

// IsStill reports whether a directory is the same one, with nothing added, removed or renamed in it. Devices get new
// numbers when the machine starts, so they do not count.
func (a Attributes) IsStill(b Attributes) bool {
	return a.Modified == b.Modified && a.Changed == b.Changed && a.Inode == b.Inode
}

// tellAlive tells that the file system has answered.
func (r *Files) tellAlive() {
	if r.alive != nil {
		r.alive()
	}
}

// Reads implements Store: what one read waits for is a disk, as a rule, or the memory of the kernel.
func (r *Files) Reads() int { return 0 }

// ReadAt implements Store. A write sets the file's time before it changes a byte: with the same time after the last
// byte was read, all bytes are of the object's version.
func (r *Files) ReadAt(_ context.Context, o *Object, p []byte, off int64) error {
	f, err := r.openObject(o)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.check(o); err != nil {
		return err
	}
	return f.fill(o, p, off)
}

func (r *Files) openObject(o *Object) (file, error) {
	f, err := r.openFile(o.Name)
	switch {
	case err == nil:
		return f, nil
	case LeadsNowhere(err):
		return f, o.changed("is gone")
	case errors.Is(err, syscall.ENXIO) || errors.Is(err, ErrNoFile): // ENXIO: a socket
		return f, o.changed("is not a regular file any more")
	}
	return f, &fs.PathError{Op: "open", Path: string(o.Name), Err: err}
}

// check compares an open file's kind, size and time with those of an object.
func (f file) check(o *Object) error {
	a, err := f.attributes()
	switch {
	case err != nil:
		return &fs.PathError{Op: "stat", Path: string(o.Name), Err: err}
	case a.Kind != KindFile:
		return o.changed("is not a regular file any more")
	case a.Size != o.Size:
		return o.changed(fmt.Sprintf("has %d bytes, had %d", a.Size, o.Size))
	case a.Modified != o.Modified:
		return o.changed(fmt.Sprintf("was written at %s, had %s", stamp(a.Modified), stamp(o.Modified)))
	case o.isReplacedBy(a):
		return o.changed("is another file than was listed, of the same size and time")
	}
	return nil
}

// isReplacedBy reports whether a file is another one than was listed, which programs that copy times bring about. Both
// numbers have to differ: chmod sets the time that the kernel keeps, and file systems of programs, as FUSE's, may give
// the same file another inode.
func (o *Object) isReplacedBy(a Attributes) bool {
	return o.Inode != 0 && a.Inode != o.Inode && a.Changed != o.Changed
}

// fill reads all of p and checks the file once more.
func (f file) fill(o *Object, p []byte, off int64) error {
	for n := 0; n < len(p); {
		k, err := f.readAt(p[n:], off+int64(n))
		if err != nil {
			return &fs.PathError{Op: "read", Path: string(o.Name), Err: err}
		}
		if k == 0 {
			return o.changed(fmt.Sprintf("ended after %d bytes of %d", off+int64(n), off+int64(len(p))))
		}
		n += k
	}
	return f.check(o)
}

func (o *Object) changed(what string) error { return &ChangedError{Name: string(o.Name), What: what} }

func stamp(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) }

// LeadsNowhere is what Python's is_dir answers with "no folder", without an error.
func LeadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}
