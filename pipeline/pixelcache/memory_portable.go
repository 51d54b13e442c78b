//go:build !linux || portable

package pixelcache

// InHeap says whether pixels lie in memory that the garbage collector knows of.
const InHeap = true

// memory gives out memory of the heap.
type memory struct{}

func (memory) take(n int) []byte { return make([]byte, n) }

func (memory) give([]byte) {}

func (memory) close() {}
