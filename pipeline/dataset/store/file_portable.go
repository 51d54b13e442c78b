//go:build !linux || portable

package store

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Files is the Store of the files below a folder. This file is for systems that nodes seldom run on; it works with
// paths and allocates. `go test -tags portable` tests it on Linux.
type Files struct {
	path    string
	alive   func() // called when the file system has answered; may be nil
	*within        // nil: links may lead anywhere
}

// OpenFiles opens a folder. If beneath is not empty it is a folder that no link may lead out of; path is that folder
// or lies in it, and both are absolute and without links: links that lead out of it are errors that wrap ErrLeadsOut.
// alive may be nil; it is called by any goroutine whenever the file system has answered.
func OpenFiles(path, beneath string, alive func()) (*Files, error) {
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	r := &Files{path: path, alive: alive}
	if beneath != "" {
		r.within, err = newWithin(beneath, path)
	}
	return r, err
}

// Close implements Store.
func (r *Files) Close() error {
	if r.within == nil {
		return nil
	}
	return r.within.close()
}

func (r *Files) join(path string) string { return filepath.Join(r.path, filepath.FromSlash(path)) }

// Stat implements Store.
func (r *Files) Stat(_ context.Context, path string) (Attributes, error) {
	defer r.tellAlive()
	if err := r.check(path); err != nil {
		return Attributes{}, err
	}
	return statPath(r.join(path))
}

// openFile opens only what is a regular file just before, since opening a FIFO may wait.
func (r *Files) openFile(key []byte) (file, error) {
	if err := r.check(string(key)); err != nil {
		return file{}, err
	}
	path := r.join(string(key))
	a, err := statPath(path)
	if err != nil {
		return file{}, err
	}
	if a.Kind != KindFile {
		return file{}, ErrNoFile
	}
	f, err := os.Open(path)
	return file{f}, cause(err)
}

type file struct{ f *os.File }

func (f file) close() { _ = f.f.Close() } // nothing was written

func (f file) attributes() (Attributes, error) {
	fi, err := f.f.Stat()
	if err != nil {
		return Attributes{}, cause(err)
	}
	return attributesOf(fi), nil
}

// readAt returns 0 at the end of the file.
func (f file) readAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, cause(err)
}

// directory reads the entries of an open directory of the file system.
type directory struct {
	root  *Files
	below string // its path below the root
	path  string
	f     *os.File
	rest  []os.DirEntry
}

// OpenDirectory implements Store.
func (r *Files) OpenDirectory(_ context.Context, path string, _ []byte) (Directory, error) {
	defer r.tellAlive()
	if err := r.check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(r.join(path))
	return &directory{root: r, below: path, path: r.join(path), f: f}, cause(err)
}

// Close gives the directory back.
func (d *directory) Close() { _ = d.f.Close() }

// Attributes of the directory itself.
func (d *directory) Attributes() (Attributes, error) { return statPath(d.path) }

// Stat follows links; name is of an entry.
func (d *directory) Stat(name []byte) (Attributes, error) {
	defer d.root.tellAlive()
	if err := d.root.check(filepath.Join(d.below, string(name))); err != nil {
		return Attributes{}, err
	}
	return statPath(filepath.Join(d.path, string(name)))
}

// Next returns entries in the file system's order, and io.EOF after the last. The name is valid until the next call.
func (d *directory) Next() ([]byte, Kind, error) {
	if len(d.rest) == 0 {
		var err error
		d.root.tellAlive()
		if d.rest, err = d.f.ReadDir(1024); len(d.rest) == 0 {
			return nil, KindUnknown, err
		}
	}
	e := d.rest[0]
	d.rest = d.rest[1:]
	switch {
	case e.Type().IsDir():
		return []byte(e.Name()), KindFolder, nil
	case e.Type().IsRegular():
		return []byte(e.Name()), KindFile, nil
	case e.Type()&fs.ModeSymlink != 0:
		return []byte(e.Name()), KindUnknown, nil
	}
	return []byte(e.Name()), KindOther, nil
}

// Known implements Directory: the kernel tells no sizes here.
func (d *directory) Known() (Attributes, bool) { return Attributes{}, false }

// Rewind goes back to the first entry.
func (d *directory) Rewind() error {
	_, err := d.f.Seek(0, io.SeekStart)
	return cause(err)
}

// statPath takes the digest of a folder's path without links for its inode, and its modification time for the time of
// change, which not every system has.
func statPath(path string) (Attributes, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Attributes{}, cause(err)
	}
	a := attributesOf(fi)
	if a.Kind == KindFolder {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return Attributes{}, cause(err)
		}
		h := fnv.New64a()
		h.Write([]byte(real))
		a.Inode = h.Sum64()
	}
	return a, nil
}

func attributesOf(fi fs.FileInfo) Attributes {
	k := KindOther
	switch {
	case fi.IsDir():
		k = KindFolder
	case fi.Mode().IsRegular():
		k = KindFile
	}
	t := fi.ModTime().UnixNano()
	return Attributes{Kind: k, Size: fi.Size(), Modified: t, Changed: t}
}

// cause takes the path off an error; callers add the key.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
