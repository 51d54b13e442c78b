//go:build linux && !portable

package pixelcache

import "golang.org/x/sys/unix"

// mapMemory returns memory that the garbage collector knows nothing of: it would let the heap grow by as much again.
// Nobody may read it after unmap.
func mapMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func unmap(data []byte) { _ = unix.Munmap(data) } // fails only for what Mmap did not return
