//go:build unix

package guardtest

import (
	"os"
	"syscall"
	"testing"
)

// guardedPages are pages with room for n bytes between two inaccessible ones, which are part of them, and how long a page is.
func guardedPages(t testing.TB, n int) (pages []byte, page int) {
	t.Helper()
	page = os.Getpagesize()
	room := (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, room+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	for _, guard := range [][]byte{m[:page], m[page+room:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return m, page
}
