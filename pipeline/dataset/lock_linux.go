//go:build linux && !portable

package dataset

import (
	"io/fs"
	"os"
	"slices"
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

// fileSystemBytes is how large the file system of a folder is; where that is not known, 0.
func fileSystemBytes(dir string) int64 {
	var st unix.Statfs_t
	if retry(func() error { return unix.Statfs(dir, &st) }) != nil {
		return 0
	}
	return int64(st.Blocks) * st.Bsize
}

// local are the types of file systems that lie on a disk of this machine, or in its memory.
var local = []int64{
	unix.BTRFS_SUPER_MAGIC, unix.EXT4_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.RAMFS_MAGIC, unix.TMPFS_MAGIC,
	unix.XFS_SUPER_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.SQUASHFS_MAGIC, unix.HUGETLBFS_MAGIC, bcachefs, zfs,
}

const bcachefs, zfs = 0xca451a4e, 0x2fc12fc1

// mayHang reports whether a file lies on another machine, or who knows where. Whoever reads a mapping of it may then be kept for ever.
func mayHang(f *os.File) bool {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) })
	return err != nil || !slices.Contains(local, int64(uint32(st.Type)))
}

// ownerOf is the user that a file belongs to.
func ownerOf(fi fs.FileInfo) (uid int, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
