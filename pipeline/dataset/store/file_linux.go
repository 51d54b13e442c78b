//go:build linux && !portable

package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Files is the Store of the files below a folder: a handle on it, so that they stay reachable when the folder is
// renamed.
type Files struct {
	fd      int
	alive   func() // called when the file system has answered; may be nil
	*within        // nil: links may lead anywhere
}

// OpenFiles opens a folder. If beneath is not empty it is a folder that no link may lead out of; path is that folder
// or lies in it, and both are absolute and without links: links that lead out of it are errors that wrap ErrLeadsOut.
// alive may be nil; it is called by any goroutine whenever the file system has answered.
func OpenFiles(path, beneath string, alive func()) (r *Files, err error) {
	r = &Files{alive: alive}
	if beneath == "" {
		r.fd, err = openDirectory(unix.AT_FDCWD, path)
	} else if r.within, err = newWithin(beneath, path); err == nil {
		if r.fd, err = r.openAt(r.below(""), unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
			err = errors.Join(err, r.close())
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return r, nil
}

// Close implements Store.
func (r *Files) Close() error {
	err := unix.Close(r.fd)
	if r.within != nil {
		err = errors.Join(err, r.close())
	}
	return err
}

// Stat implements Store.
func (r *Files) Stat(_ context.Context, path string) (Attributes, error) {
	defer r.tellAlive()
	if r.within != nil {
		return r.stat(r.below(path))
	}
	return statAt(r.fd, cmp.Or(path, "."))
}

// openFile opens for reading and never waits: not for the writer of a FIFO, nor for a device. It appends to key.
func (r *Files) openFile(key []byte) (file, error) {
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_LARGEFILE
	if r.within != nil {
		fd, err := r.openAt(r.below(string(key)), flags)
		return file{fd}, err
	}
	key = append(key, 0)
	for {
		// unix.Openat would copy the key to the heap.
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(r.fd), uintptr(unsafe.Pointer(&key[0])), flags, 0, 0, 0)
		if errno == 0 {
			return file{int(fd)}, nil
		}
		if errno != unix.EINTR {
			return file{-1}, errno
		}
	}
}

// file is an open file.
type file struct{ fd int }

func (f file) close() { _ = unix.Close(f.fd) } // nothing was written

func (f file) attributes() (Attributes, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(f.fd, &st) })
	return attributesOf(&st), err
}

// readAt returns 0 at the end of the file.
func (f file) readAt(p []byte, off int64) (n int, err error) {
	err = retry(func() (err error) {
		n, err = unix.Pread(f.fd, p, off)
		return err
	})
	return n, err
}

// directory reads the entries of an open directory of the file system.
type directory struct {
	root      *Files
	path      string // below the root
	fd        int
	buf, rest []byte
}

// OpenDirectory implements Store.
func (r *Files) OpenDirectory(_ context.Context, path string, buf []byte) (Directory, error) {
	defer r.tellAlive()
	d := &directory{root: r, path: path, buf: buf}
	var err error
	if r.within != nil {
		d.fd, err = r.openAt(r.below(path), unix.O_RDONLY|unix.O_DIRECTORY)
	} else {
		d.fd, err = openDirectory(r.fd, cmp.Or(path, "."))
	}
	return d, err
}

// Close gives the directory back.
func (d *directory) Close() { _ = unix.Close(d.fd) }

// Attributes of the directory itself.
func (d *directory) Attributes() (Attributes, error) { return file{d.fd}.attributes() }

// Stat follows links; name is of an entry.
func (d *directory) Stat(name []byte) (Attributes, error) {
	defer d.root.tellAlive()
	if w := d.root.within; w != nil {
		return w.entry(d.fd, string(name), w.below(d.path+"/"+string(name)))
	}
	return statAt(d.fd, string(name))
}

// Next returns entries in the file system's order, without "." and "..", and io.EOF after the last. The name is valid
// until the next call.
func (d *directory) Next() ([]byte, Kind, error) {
	for {
		if len(d.rest) == 0 {
			if err := d.fill(); err != nil {
				return nil, KindUnknown, err
			}
		}
		name, k, err := d.entry()
		if err != nil || (string(name) != "." && string(name) != "..") {
			return name, k, err
		}
	}
}

// Known implements Directory: the kernel tells no sizes here.
func (d *directory) Known() (Attributes, bool) { return Attributes{}, false }

// Rewind goes back to the first entry.
func (d *directory) Rewind() error {
	_, err := unix.Seek(d.fd, 0, io.SeekStart)
	return err
}

func (d *directory) fill() error {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Getdents(d.fd, d.buf)
		return err
	})
	d.root.tellAlive()
	if err == nil && n == 0 {
		err = io.EOF
	}
	d.rest = d.buf[:max(n, 0)]
	return err
}

// entry takes one struct linux_dirent64: u64 inode, i64 offset, u16 length, u8 type, name and zero.
func (d *directory) entry() ([]byte, Kind, error) {
	const head = 19
	if len(d.rest) < head {
		return nil, KindUnknown, unix.EIO
	}
	length := int(binary.NativeEndian.Uint16(d.rest[16:]))
	if length < head || length > len(d.rest) {
		return nil, KindUnknown, unix.EIO
	}
	typ, name := d.rest[18], d.rest[head:length]
	d.rest = d.rest[length:]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	switch typ {
	case unix.DT_DIR:
		return name, KindFolder, nil
	case unix.DT_REG:
		return name, KindFile, nil
	case unix.DT_LNK, unix.DT_UNKNOWN:
		return name, KindUnknown, nil
	}
	return name, KindOther, nil
}

func openDirectory(at int, path string) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(at, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_LARGEFILE, 0)
		return err
	})
	return fd, err
}

func statAt(at int, path string) (Attributes, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(at, path, &st, 0) })
	return attributesOf(&st), err
}

func attributesOf(st *unix.Stat_t) Attributes {
	k := KindOther
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		k = KindFolder
	case unix.S_IFREG:
		k = KindFile
	}
	return Attributes{
		Kind: k, Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
		Device: uint64(st.Dev), Inode: st.Ino, //nolint:unconvert // 32 bits on MIPS
	}
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
