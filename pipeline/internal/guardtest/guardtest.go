// Package guardtest gives tests memory that lies at an inaccessible page, so that a kernel that reads or writes beyond what it was given ends the test.
// Where there is no such memory it is ordinary memory, of the same length and capacity.
package guardtest

import "testing"

// Bytes are n bytes, zeros, that an inaccessible page follows. They belong to the test, and are gone when it ends.
func Bytes(t testing.TB, n int) []byte {
	t.Helper()
	m, page := guardedPages(t, n)
	end := len(m) - page
	return m[end-n : end : end]
}

// Copy is a copy of b that an inaccessible page follows.
func Copy(t testing.TB, b []byte) []byte {
	t.Helper()
	c := Bytes(t, len(b))
	copy(c, b)
	return c
}

// CopyAfter is a copy of b that an inaccessible page precedes.
func CopyAfter(t testing.TB, b []byte) []byte {
	t.Helper()
	m, page := guardedPages(t, len(b))
	c := m[page : page+len(b) : page+len(b)]
	copy(c, b)
	return c
}
