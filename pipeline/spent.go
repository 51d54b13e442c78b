package pipeline

import (
	"sync/atomic"
	"time"
)

// spending counts where the time of workers goes, in nanoseconds.
type spending struct{ reading, making atomic.Int64 }

// Spent is for how long workers have read files so far, and for how long cores have decoded and transformed what was read.
func (p *Pipeline) Spent() (reading, making time.Duration) {
	return time.Duration(p.spending.reading.Load()), time.Duration(p.spending.making.Load())
}
