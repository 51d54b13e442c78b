//go:build !portable

package dataset

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// A place that is looked up in a large list has the system read its page, and no others.
func TestLargeListIsReadByPage(t *testing.T) {
	size := readWhole() + 1<<20
	path := filepath.Join(t.TempDir(), "list")
	treetest.Must(t, os.WriteFile(path, nil, 0o600))
	treetest.Must(t, os.Truncate(path, int64(size)))
	m, err := load(path)
	treetest.Must(t, err)
	defer m.free()
	if m.data[size/2] != 0 {
		t.Error("a hole is no zeros")
	}
	if n := pagesInMemory(t, m.data); n != 1 {
		t.Errorf("%d pages are in memory", n)
	}
}

// pagesInMemory is how many pages of a file that is mapped are in memory.
func pagesInMemory(t *testing.T, data []byte) (n int) {
	in := make([]byte, (len(data)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&in[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, flags := range in {
		n += int(flags & 1)
	}
	return n
}
