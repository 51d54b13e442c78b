//go:build linux && !portable

package readcache

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// usage is how many bytes the blocks of a folder have, which all who share it count together, in a file. It may be too
// high, by those who were killed, until room is made.
type usage struct {
	mu   sync.Mutex
	file *os.File
}

func (u *usage) open(path string) (err error) {
	u.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	return err
}

func (u *usage) close() error { return u.file.Close() }

// add adds to the count and returns what it is then, 0 at least.
func (u *usage) add(n int64) (used int64, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.lock(unix.LOCK_EX); err != nil {
		return 0, err
	}
	defer u.lock(unix.LOCK_UN) //nolint:errcheck // an open file is unlocked
	var b [8]byte
	if _, err := u.file.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	used = max(0, int64(binary.LittleEndian.Uint64(b[:]))+n)
	if n == 0 {
		return used, nil
	}
	binary.LittleEndian.PutUint64(b[:], uint64(used))
	_, err = u.file.WriteAt(b[:], 0)
	return used, err
}

func (u *usage) lock(how int) error {
	for {
		if err := unix.Flock(int(u.file.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openBlock opens a file, and neither follows a link nor waits for whoever writes to a FIFO.
func openBlock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
}

// isNoBlock reports whether an error of openBlock says that something else lies there: a link or a socket.
func isNoBlock(err error) bool { return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) }

// ownerOf is the user that a file belongs to, if the system tells.
func ownerOf(fi os.FileInfo) (uid int, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// lockRoom locks the making of room, among all processes, until it is closed; nil: somebody else has it.
func lockRoom(path string) io.Closer {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return f
}
