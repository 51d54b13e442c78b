//go:build unix

package jpeg

import (
	"os"
	"syscall"
	"testing"
)

// guardedCopy copies b to memory that ends at an inaccessible page.
func guardedCopy(t testing.TB, b []byte) []byte {
	page := os.Getpagesize()
	size := (len(b) + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	g := m[size-len(b) : size : size]
	copy(g, b)
	return g
}
