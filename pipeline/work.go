package pipeline

import "time"

// Work is what a pipeline has done since it was opened.
type Work struct {
	// CoreSeconds that decoders were in use.
	CoreSeconds float64
	// BusySeconds with work at hand; see share.Hand.
	BusySeconds float64
}

// Work tells what was done.
func (p *Pipeline) Work() Work {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return Work{time.Duration(p.spending.making.Load()).Seconds(), p.queue.hand.Seconds(p.queue.seconds(time.Now()))}
}
