//go:build linux && !portable

package imageindex

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file of size > 0 bytes for reading. f may be closed afterwards.
func mapFile(f *os.File, size int) (*memory, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return &memory{data: data, mapped: err == nil}, err
}

func unmap(data []byte) { _ = unix.Munmap(data) } // fails only for what Mmap did not return
