//go:build unix

package guardtest_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/feedwater-io/feedwater/pipeline/internal/guardtest"
)

// What is given can be used as a whole, and the byte beside it cannot.
func TestGuards(t *testing.T) {
	for _, n := range []int{1, 100, 4096, 5000} {
		whole := make([]byte, n)
		for i := range whole {
			whole[i] = byte(i)
		}
		for name, c := range map[string]struct {
			memory []byte
			beside int
		}{
			"bytes":      {guardtest.Bytes(t, n), n},
			"copy":       {guardtest.Copy(t, whole), n},
			"copy after": {guardtest.CopyAfter(t, whole), -1},
		} {
			copied := name != "bytes"
			if len(c.memory) != n || cap(c.memory) != n || copied && string(c.memory) != string(whole) {
				t.Errorf("%s of %d: length %d, capacity %d, or another content", name, n, len(c.memory), cap(c.memory))
			}
			clear(c.memory)
			if !faults(c.memory, c.beside) {
				t.Errorf("%s of %d: byte %d can be read", name, n, c.beside)
			}
		}
	}
}

// faults reports whether the byte at an offset from memory cannot be read.
func faults(memory []byte, at int) (failed bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { failed = recover() != nil }()
	sink = *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(memory)), at))
	return false
}

var sink byte
