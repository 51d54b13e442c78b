//go:build linux && !portable

package pixelcache

import (
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// InHeap says whether pixels lie in memory that the garbage collector knows of.
const InHeap = false

// memory gives out memory that the garbage collector knows nothing of: it would let the heap grow by as much again. Its
// mappings are large, and are kept: one for each picture would split where pictures come and go, until there are more than
// the kernel allows a process (vm.max_map_count). What nobody has written takes no memory, and what is given back none
// either. Nobody may read that.
type memory struct {
	mappings [][]byte
	rest     []byte           // of the last one
	free     map[int][][]byte // by sizeClass
}

// mappingBytes is how large a mapping is at least.
const mappingBytes = 64 << 20

// take returns n bytes, a multiple of pages; nil: there are none.
func (m *memory) take(n int) []byte {
	size := sizeClass(n)
	if free := m.free[size]; len(free) > 0 {
		data := free[len(free)-1]
		m.free[size] = free[:len(free)-1]
		return data[:n:n]
	}
	if len(m.rest) < size {
		mapping, err := unix.Mmap(-1, 0, max(size, mappingBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil
		}
		_ = unix.Madvise(mapping, unix.MADV_NOHUGEPAGE) // huge pages would take memory between pictures; an error means that there are none
		m.mappings, m.rest = append(m.mappings, mapping), mapping
	}
	data := m.rest[:n:n]
	m.rest = m.rest[size:]
	return data
}

// give takes back what take returned.
func (m *memory) give(data []byte) {
	_ = unix.Madvise(data, unix.MADV_DONTNEED) // fails only for memory that is locked, which is taken again as it is
	size := sizeClass(len(data))
	if m.free == nil {
		m.free = map[int][][]byte{}
	}
	m.free[size] = append(m.free[size], unsafe.Slice(unsafe.SliceData(data), size))
}

// close gives everything back, after which nothing is taken.
func (m *memory) close() {
	for _, mapping := range m.mappings {
		_ = unix.Munmap(mapping) // it is whole, as it was mapped
	}
	*m = memory{}
}

// sizeClass rounds up, by an eighth at most, so that what comes has room where others went.
func sizeClass(n int) int {
	step := max(os.Getpagesize(), 1<<max(0, bits.Len(uint(n-1))-4))
	return (n + step - 1) / step * step
}
