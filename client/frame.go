package client

import "sync"

// frames is the memory that gRPC receives into. Its own pool clears every buffer before use; here a buffer comes as it is, and gRPC
// overwrites it whole. The one that was given back last is handed out first: it is in the cache still.
type frames struct {
	mu   sync.Mutex
	free []*[]byte
}

const (
	frameBytes = 16 << 10 // the largest HTTP/2 frame that gRPC takes
	keptFrames = 256      // as much as two pieces and what is read ahead
)

// Get implements mem.BufferPool.
func (f *frames) Get(n int) *[]byte {
	if n > frameBytes {
		b := make([]byte, n)
		return &b
	}
	if b := f.last(); b != nil {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, frameBytes)
	return &b
}

func (f *frames) last() *[]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.free)
	if n == 0 {
		return nil
	}
	b := f.free[n-1]
	f.free = f.free[:n-1]
	return b
}

// Put implements mem.BufferPool.
func (f *frames) Put(b *[]byte) {
	if cap(*b) != frameBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) < keptFrames {
		f.free = append(f.free, b)
	}
}
