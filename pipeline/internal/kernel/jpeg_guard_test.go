//go:build unix

package kernel

import (
	"os"
	"syscall"
	"testing"
)

// guardedCopy copies b to memory that an inaccessible page follows, or precedes if first.
func guardedCopy(t testing.TB, b []byte, first bool) []byte {
	t.Helper()
	page := os.Getpagesize()
	size := (len(b) + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	for _, p := range [][]byte{m[:page], m[page+size:]} {
		if err := syscall.Mprotect(p, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	at := page + size - len(b)
	if first {
		at = page
	}
	g := m[at : at+len(b) : at+len(b)]
	copy(g, b)
	return g
}
