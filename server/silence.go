package server

import (
	"sync/atomic"
	"time"
)

const (
	// pingEvery is after how long a connection from which nothing came is asked whether somebody is there.
	pingEvery = 10 * time.Second
	// A connection that is silent at silentTicks looks in a row, after the first, one each listenEvery, may be one
	// whose other end is gone.
	listenEvery = 5 * time.Second
	silentTicks = 3
)

// hearing follows whether anything comes from a stream's trainer. The zero value has heard him.
type hearing struct {
	silent atomic.Bool
	reads  uint64
	ticks  int // in which nothing came
}

// listen takes how often the connection was read from, each listenEvery. Ticks are counted, and not time: after this
// process was stopped for a while everybody was silent.
func (h *hearing) listen(reads uint64) {
	if reads != h.reads {
		h.reads, h.ticks = reads, 0
	} else {
		h.ticks++
	}
	h.silent.Store(h.ticks >= silentTicks)
}
