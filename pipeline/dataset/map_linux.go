//go:build linux && !portable

package dataset

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file of size > 0 bytes for reading, or a copy of it where the file may hang. f may be closed afterwards.
func mapFile(f *os.File, size int) (memory, error) {
	if mayHang(f) {
		return copyFile(f, size)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err == nil && size > readWhole() {
		_ = unix.Madvise(data, unix.MADV_RANDOM) // without it the same bytes come
	}
	return memory{data: data, mapped: err == nil}, err
}

// readWhole is how large a list may be that the system reads more of than is asked for, an eighth of memory: it is in memory soon, and stays there
// while it is used. Of a larger one each place that is looked up would have it read as much as the disk is set to, which may be 8 MiB; Linux forgets
// its pages as it does those of files that are read once.
func readWhole() int {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 256 << 20
	}
	return int(i.Totalram * uint64(i.Unit) / 8)
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
