package pipeline

import (
	"sync/atomic"
	"time"
)

// spending counts where the time of workers goes, in nanoseconds, and what came of it.
type spending struct {
	reading, making atomic.Int64
	samples         atomic.Uint64
}

// Work is what a pipeline has done since it was opened.
type Work struct {
	// CoreSeconds that decoders were in use, and ReadSeconds that workers read files.
	CoreSeconds, ReadSeconds float64
	// Samples that took them, whatever became of their batches.
	Samples uint64
	// BusySeconds are those in which workers had work at hand, as share.BusyMeter counts them.
	BusySeconds float64
}

// Work tells what was done.
func (p *Pipeline) Work() Work {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return Work{
		CoreSeconds: time.Duration(p.spending.making.Load()).Seconds(),
		ReadSeconds: time.Duration(p.spending.reading.Load()).Seconds(),
		Samples:     p.spending.samples.Load(),
		BusySeconds: p.queue.hand.Seconds(p.queue.toSeconds(time.Now())),
	}
}
