//go:build linux && !portable

package store

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openat2 is the system's; tests have systems without it.
var openat2 = unix.Openat2

// withinSystem is the folder's handle, for openat2.
type withinSystem struct {
	fd      int
	openat2 func(int, string, *unix.OpenHow) (int, error)
}

func (w *within) open() (err error) {
	w.openat2 = openat2
	w.fd, err = openDirectory(unix.AT_FDCWD, w.path)
	return err
}

func (w *within) close() error { return errors.Join(unix.Close(w.fd), w.root.Close()) }

// openAt opens what has this path below the folder.
func (w *within) openAt(path string, flags uint64) (int, error) {
	fd, err := w.resolve(path, flags, unix.RESOLVE_BENEATH)
	if err == unix.EXDEV { //nolint:errorlint // an errno
		if path, err = w.direct(path); err != nil {
			return -1, err
		}
		fd, err = w.resolve(path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
		if err == unix.EXDEV || err == unix.ELOOP { //nolint:errorlint // somebody exchanged it
			return -1, ErrLeadsOut
		}
	}
	if err == unix.ENOSYS || err == unix.EPERM { //nolint:errorlint // an old kernel, or a filter of system calls
		return w.openLocal(path, int(flags))
	}
	return fd, err
}

// resolve is openat2. EAGAIN says that something was renamed meanwhile.
func (w *within) resolve(path string, flags, how uint64) (fd int, err error) {
	for range 128 {
		fd, err = w.openat2(w.fd, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_LARGEFILE, Resolve: how | unix.RESOLVE_NO_MAGICLINKS})
		if err != unix.EINTR && err != unix.EAGAIN { //nolint:errorlint // an errno
			break
		}
	}
	return fd, err
}

// openLocal is openAt where the system has no openat2.
func (w *within) openLocal(path string, flags int) (int, error) {
	f, err := w.root.OpenFile(path, flags&^unix.O_PATH|unix.O_NONBLOCK, 0)
	if err := leadsOut(err); err == ErrLeadsOut { //nolint:errorlint // ours
		if path, err = w.direct(path); err == nil {
			f, err = w.root.OpenFile(path, flags&^unix.O_PATH|unix.O_NONBLOCK, 0)
		}
		if err != nil {
			return -1, leadsOut(err)
		}
	} else if err != nil {
		return -1, err
	}
	defer f.Close()
	return duplicate(f)
}

func duplicate(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	rawErr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(rawErr, err)
}

// stat follows links.
func (w *within) stat(path string) (Attributes, error) {
	fd, err := w.openAt(path, unix.O_PATH)
	if err != nil {
		return Attributes{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	return file{fd}.attributes()
}

// entry is what a name in an open directory stands for; only links are looked for from the folder.
func (w *within) entry(fd int, name, path string) (Attributes, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return w.stat(path)
	}
	return attributesOf(&st), err
}
