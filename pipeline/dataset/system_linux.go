//go:build linux && !portable

package dataset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// root is a handle on a data set's folder: what is below it stays reachable when the folder is renamed.
type root struct {
	fd      int
	users   atomic.Int64 // see hold
	alive   func()       // see Options.Alive; may be nil
	*within              // nil: links may lead anywhere
}

// openRoot opens a folder; beneath is as in Options.
func openRoot(path, beneath string) (r *root, err error) {
	r = &root{}
	if beneath == "" {
		r.fd, err = openDirectory(unix.AT_FDCWD, path)
	} else if r.within, err = newWithin(beneath, path); err == nil {
		if r.fd, err = r.openAt(r.below(""), unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
			err = errors.Join(err, r.within.close())
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return r, nil
}

func (r *root) close() error {
	err := unix.Close(r.fd)
	if r.within != nil {
		err = errors.Join(err, r.within.close())
	}
	return err
}

// stat follows links; path is below the root, "" for the root itself.
func (r *root) stat(path string) (attributes, error) {
	defer r.tellAlive()
	if r.within != nil {
		return r.within.stat(r.below(path))
	}
	return statAt(r.fd, cmp.Or(path, "."))
}

// openFile opens for reading and never waits: not for the writer of a FIFO, nor for a device. It appends to key.
func (r *root) openFile(key []byte) (file, error) {
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

func (f file) attributes() (attributes, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(f.fd, &st) })
	return attributesOf(&st), err
}

// read returns 0 at the end of the file.
func (f file) read(p []byte) (n int, err error) {
	err = retry(func() (err error) {
		n, err = unix.Read(f.fd, p)
		return err
	})
	return n, err
}

// directory reads the entries of an open directory.
type directory struct {
	root      *root
	path      string // below the root
	fd        int
	buf, rest []byte
}

// openDir opens the directory path below the root, "" for the root itself; buf is its working memory.
func (r *root) openDir(path string, buf []byte) (*directory, error) {
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

func (d *directory) close() { _ = unix.Close(d.fd) }

func (d *directory) attributes() (attributes, error) { return file{d.fd}.attributes() }

func (d *directory) stat(name []byte) (attributes, error) {
	defer d.root.tellAlive()
	if w := d.root.within; w != nil {
		return w.entry(d.fd, string(name), w.below(d.path+"/"+string(name)))
	}
	return statAt(d.fd, string(name))
}

// next returns entries in the file system's order, without "." and "..", and io.EOF after the last. The name is valid until
// the next call.
func (d *directory) next() ([]byte, kind, error) {
	for {
		if len(d.rest) == 0 {
			if err := d.fill(); err != nil {
				return nil, kindUnknown, err
			}
		}
		name, k, err := d.entry()
		if err != nil || (string(name) != "." && string(name) != "..") {
			return name, k, err
		}
	}
}

func (d *directory) rewind() error {
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
func (d *directory) entry() ([]byte, kind, error) {
	const head = 19
	if len(d.rest) < head {
		return nil, kindUnknown, unix.EIO
	}
	length := int(binary.NativeEndian.Uint16(d.rest[16:]))
	if length < head || length > len(d.rest) {
		return nil, kindUnknown, unix.EIO
	}
	typ, name := d.rest[18], d.rest[head:length]
	d.rest = d.rest[length:]
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	switch typ {
	case unix.DT_DIR:
		return name, kindFolder, nil
	case unix.DT_REG:
		return name, kindFile, nil
	case unix.DT_LNK, unix.DT_UNKNOWN:
		return name, kindUnknown, nil
	}
	return name, kindOther, nil
}

func openDirectory(at int, path string) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(at, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_LARGEFILE, 0)
		return err
	})
	return fd, err
}

func statAt(at int, path string) (attributes, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(at, path, &st, 0) })
	return attributesOf(&st), err
}

func attributesOf(st *unix.Stat_t) attributes {
	k := kindOther
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		k = kindFolder
	case unix.S_IFREG:
		k = kindFile
	}
	return attributes{
		kind: k, size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(),
		device: uint64(st.Dev), inode: st.Ino, //nolint:unconvert // 32 bits on MIPS
	}
}

// mapFile maps a whole file of size > 0 bytes for reading, or a copy of it where the file may hang. f may be closed afterwards.
func mapFile(f *os.File, size int) (memory, error) {
	if mayHang(f) {
		return copyFile(f, size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return memory{data: data, mapped: err == nil}, err
}

// copyFile copies a whole file into memory that is not Go's to look through.
func copyFile(f *os.File, size int) (memory, error) {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return memory{}, err
	}
	m := memory{data: data, mapped: true}
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data); err != nil {
		m.free()
		return memory{}, err
	}
	return m, nil
}

func unmap(data []byte) { _ = unix.Munmap(data) } // fails only for what Mmap did not return

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
