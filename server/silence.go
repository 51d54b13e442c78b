package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/server/runs"
)

const (
	// pingEvery is after how long a connection from which nothing came is asked whether somebody is there.
	pingEvery = 10 * time.Second
	// A connection that is silent at silentTicks looks in a row, after the first, one each listenEvery, may be one whose other end is gone.
	listenEvery = 5 * time.Second
	silentTicks = 3
)

// SilentError says that a stream's trainer was not heard for so long that a trainer of another build could take over its job.
type SilentError struct{ After time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("nothing came from the trainer for %s, and a trainer of another build has taken over its job", e.After)
}

// hearing follows whether anything comes from a stream's trainer. The zero value has heard him.
type hearing struct {
	silent atomic.Bool
	reads  uint64
	ticks  int // in which nothing came
}

// listen takes how often the connection was read from, each listenEvery. Ticks are counted, and not time: after this process was stopped for a while
// everybody was silent.
func (h *hearing) listen(reads uint64) {
	if reads != h.reads {
		h.reads, h.ticks = reads, 0
	} else {
		h.ticks++
	}
	h.silent.Store(h.ticks >= silentTicks)
}

// trainer is what the run of a stream's job knows of its trainer. A stream within the process is never silent.
func (t *stream) trainer() *runs.Trainer {
	if t.conn == nil {
		return &runs.Trainer{}
	}
	return &runs.Trainer{IsSilent: t.hearing.silent.Load, End: sync.OnceFunc(func() { close(t.replaced) })}
}
