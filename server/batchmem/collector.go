package batchmem

import (
	"runtime"
	"sync"
	"time"
)

// Collector runs the garbage collector for streams that died, once for all that wait for it at the same time.
type Collector struct {
	mu   sync.Mutex
	last time.Time // when the latest run began
}

// CollectSince returns when a run that began after since has ended.
func (c *Collector) CollectSince(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.After(since) {
		return
	}
	c.last = time.Now()
	runtime.GC()
}
