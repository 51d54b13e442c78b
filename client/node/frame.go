package node

import "sync"

// frames is the memory that gRPC receives into. Its own pool clears every buffer before use; here a buffer comes as it
// is, and gRPC overwrites it whole. The one that was given back last is handed out first: it is in the cache still.
type frames struct {
	mu   sync.Mutex
	free []*[]byte
	next *[]byte
}

const (
	frameBytes = 16 << 10 // the largest HTTP/2 frame that gRPC takes
	keptFrames = 640      // as much as a window, and two pieces
)

// Get implements mem.BufferPool. A buffer that was offered goes to a full frame only: it may hold the start of what
// follows a smaller one.
func (f *frames) Get(n int) *[]byte {
	if n > frameBytes {
		b := make([]byte, n)
		return &b
	}
	b := f.takeFrame(n == frameBytes)
	*b = (*b)[:n]
	return b
}

// takeSpare returns a buffer of the size of a frame, whatever was offered.
func (f *frames) takeSpare() *[]byte { return f.takeFrame(false) }

// offerNext makes a buffer the one for the next full frame. It returns the one that was offered before, nil if it was
// handed out.
func (f *frames) offerNext(b *[]byte) (before *[]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, f.next = f.next, b
	return before
}

func (f *frames) takeFrame(full bool) *[]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.next; full && b != nil {
		f.next = nil
		return b
	}
	n := len(f.free)
	if n == 0 {
		b := make([]byte, frameBytes)
		return &b
	}
	b := f.free[n-1]
	f.free = f.free[:n-1]
	*b = (*b)[:frameBytes]
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

// readBuffer is what is read of a connection at once: fewer, larger reads, which still lie in the cache when they are
// copied from.
const readBuffer = 256 << 10
