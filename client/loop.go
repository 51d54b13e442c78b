package client

import (
	"math"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// silenceSeconds is for how long batches must last when a node falls silent: until that is noticed and the batch came from elsewhere.
const silenceSeconds = 2

// pacing is what a fleet knows of the training loop that it feeds, by its pulses, and of how long batches take.
type pacing struct {
	mu     sync.Mutex
	pace   control.Pace
	window control.Window
	ready  int // batches in the trainer's memory
}

// addPulse takes a pulse.
func (p *pacing) addPulse(pulse *pb.Pulse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = int(min(pulse.Ready, 1<<16))
	for _, s := range pulse.Steps {
		step := control.Step{Number: s.Number, Seconds: s.Step, Wait: s.Wait, Idle: math.NaN()}
		if s.Idle != nil {
			step.Idle = *s.Idle
		}
		p.pace.Add(step)
		p.window.Stepped(step)
	}
}

// addArrival takes how long a batch took to come, queued seconds of it in a node's queue.
func (p *pacing) addArrival(took time.Duration, queued float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window.Arrived(took.Seconds() - queued)
}

// Due is when the loop will need the batch that has ahead others before it, from now. It never blocks.
func (f *Fleet) Due(ahead int) time.Duration {
	f.job.pacing.mu.Lock()
	defer f.job.pacing.mu.Unlock()
	return time.Duration(min(f.job.pacing.pace.Due(ahead), 3600) * float64(time.Second))
}

// DueAfter is when a want is due that has ahead others before it, the last of which is due at last: never before that one, for what is known
// of the pace changes, and the order does not.
func (f *Fleet) DueAfter(last time.Time, ahead int) time.Time {
	due := time.Now().Add(f.Due(ahead))
	if ahead > 0 && due.Before(last) {
		return last
	}
	return due
}

// Window is how many batches of that many samples to have wanted or ready: enough to outlast the slowest of late and a node that falls
// silent, by the loop's pace. While nothing comes ahead of need more than what keeps the nodes busy would only take memory, so the
// window grows with what is ready. It never blocks.
func (f *Fleet) Window(batch int) int {
	busy := f.inHand(batch)
	silence := float64(silenceSeconds)
	if len(f.job.options.Nodes) == 0 { // this process does not fall silent
		silence = 0
	}
	f.job.pacing.mu.Lock()
	defer f.job.pacing.mu.Unlock()
	n := f.job.pacing.window.Batches(f.job.pacing.pace.Seconds(), silence)
	if n == 0 {
		return busy
	}
	return min(n, busy+2*(f.job.pacing.ready+SpareBatches))
}

// SpareBatches is how many batches are wanted beside those that keep nodes busy.
const SpareBatches = 2
