//go:build !linux || portable

package dataset

import (
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// root names a data set's folder. This file is for systems that nodes seldom run on; it works with paths and allocates.
// `go test -tags portable` tests it on Linux.
type root struct {
	path    string
	users   atomic.Int64 // see hold
	alive   func()       // see Options.Alive; may be nil
	*within              // nil: links may lead anywhere
}

// openRoot opens a folder; beneath is as in Options.
func openRoot(path, beneath string) (*root, error) {
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	r := &root{path: path}
	if beneath != "" {
		r.within, err = newWithin(beneath, path)
	}
	return r, err
}

func (r *root) close() error {
	if r.within == nil {
		return nil
	}
	return r.within.close()
}

func (r *root) join(path string) string { return filepath.Join(r.path, filepath.FromSlash(path)) }

func (r *root) stat(path string) (attributes, error) {
	defer r.tellAlive()
	if err := r.check(path); err != nil {
		return attributes{}, err
	}
	return statPath(r.join(path))
}

// openFile opens only what is a regular file just before, since opening a FIFO may wait.
func (r *root) openFile(key []byte) (file, error) {
	if err := r.check(string(key)); err != nil {
		return file{}, err
	}
	path := r.join(string(key))
	a, err := statPath(path)
	if err != nil {
		return file{}, err
	}
	if a.kind != kindFile {
		return file{}, errNoFile
	}
	f, err := os.Open(path)
	return file{f}, cause(err)
}

type file struct{ f *os.File }

func (f file) close() { _ = f.f.Close() } // nothing was written

func (f file) attributes() (attributes, error) {
	fi, err := f.f.Stat()
	if err != nil {
		return attributes{}, cause(err)
	}
	return attributesOf(fi), nil
}

func (f file) read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, cause(err)
}

type directory struct {
	root  *root
	below string // its path below the root
	path  string
	f     *os.File
	rest  []os.DirEntry
}

func (r *root) openDir(path string, _ []byte) (*directory, error) {
	defer r.tellAlive()
	if err := r.check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(r.join(path))
	return &directory{root: r, below: path, path: r.join(path), f: f}, cause(err)
}

func (d *directory) close() { _ = d.f.Close() }

func (d *directory) attributes() (attributes, error) { return statPath(d.path) }

func (d *directory) stat(name []byte) (attributes, error) {
	defer d.root.tellAlive()
	if err := d.root.check(filepath.Join(d.below, string(name))); err != nil {
		return attributes{}, err
	}
	return statPath(filepath.Join(d.path, string(name)))
}

func (d *directory) next() ([]byte, kind, error) {
	if len(d.rest) == 0 {
		var err error
		d.root.tellAlive()
		if d.rest, err = d.f.ReadDir(1024); len(d.rest) == 0 {
			return nil, kindUnknown, err
		}
	}
	e := d.rest[0]
	d.rest = d.rest[1:]
	switch {
	case e.Type().IsDir():
		return []byte(e.Name()), kindFolder, nil
	case e.Type().IsRegular():
		return []byte(e.Name()), kindFile, nil
	case e.Type()&fs.ModeSymlink != 0:
		return []byte(e.Name()), kindUnknown, nil
	}
	return []byte(e.Name()), kindOther, nil
}

func (d *directory) rewind() error {
	_, err := d.f.Seek(0, io.SeekStart)
	return cause(err)
}

// statPath takes the digest of a folder's path without links for its inode, and its modification time for the time of
// change, which not every system has.
func statPath(path string) (attributes, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return attributes{}, cause(err)
	}
	a := attributesOf(fi)
	if a.kind == kindFolder {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return attributes{}, cause(err)
		}
		h := fnv.New64a()
		h.Write([]byte(real))
		a.inode = h.Sum64()
	}
	return a, nil
}

func attributesOf(fi fs.FileInfo) attributes {
	k := kindOther
	switch {
	case fi.IsDir():
		k = kindFolder
	case fi.Mode().IsRegular():
		k = kindFile
	}
	t := fi.ModTime().UnixNano()
	return attributes{kind: k, size: fi.Size(), modified: t, changed: t}
}

// mapFile reads the file: mapping is an economy, not a need.
func mapFile(f *os.File, size int) (memory, error) {
	data := make([]byte, size)
	_, err := f.ReadAt(data, 0)
	return memory{data: data}, err
}

func unmap([]byte) {}

// cause takes the path off an error; callers add the key.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
