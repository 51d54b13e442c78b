//go:build !linux || portable

package pixelcache

// mapMemory returns memory of the heap.
func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func unmap([]byte) {}
