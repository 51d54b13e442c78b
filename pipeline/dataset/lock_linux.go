//go:build linux && !portable

package dataset

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock makes the file path and locks it, until it is closed. Without a file, others says whether somebody else has locked it; if not there are
// no locks here.
func tryLock(path string) (_ *os.File, others bool) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, false
	}
	err = retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		_ = f.Close()
		return nil, err == unix.EWOULDBLOCK //nolint:errorlint // an errno
	}
	mine, mineErr := f.Stat()
	there, thereErr := os.Lstat(path)
	if mineErr != nil || thereErr != nil || !os.SameFile(mine, there) { // whoever had it has removed it
		_ = f.Close()
		return nil, true
	}
	_ = f.Truncate(0) // of one who was killed
	return f, false
}

// writable reports whether files can be made in a folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// ownerOf is the user that a file belongs to.
func ownerOf(fi fs.FileInfo) (uid int, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
