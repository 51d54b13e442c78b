package loader

import (
	"context"
	"os"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	pulseEvery = 250 * time.Millisecond // at most
	blockedFor = 500 * time.Millisecond // in next, from which on it is told each so often
)

// steps is what a Loader knows of the loop that takes its batches.
type steps struct {
	returned time.Time // the latest batch; zero: what comes is no step
	told     time.Time
	untold   []*pb.Step
}

// rest says that a pass begins or ends: what lies between two is no step.
func (s *steps) rest() { s.returned = time.Time{} }

// await waits for a batch, and for how long it did. While it is blocked it says so to the nodes.
func (l *Loader) await(ctx context.Context, p *pending) (client.Result, time.Duration, error) {
	select {
	case r := <-p.result:
		return r, 0, nil
	default:
	}
	began := time.Now()
	tick := time.NewTicker(blockedFor)
	defer tick.Stop()
	for {
		select {
		case r := <-p.result:
			return r, time.Since(began), nil
		case now := <-tick.C:
			l.tell(now, now.Sub(began))
		case <-ctx.Done():
			return client.Result{}, 0, ctx.Err()
		}
	}
}

// stepped notes that p's batch is about to be returned, after so much waiting.
func (l *Loader) stepped(p *pending, wait time.Duration) {
	s, now := &l.steps, time.Now()
	if !s.returned.IsZero() {
		step := &pb.Step{Number: l.number(p), Step: now.Sub(s.returned).Seconds(), Wait: wait.Seconds()}
		if l.options.Idle != nil {
			if idle := l.options.Idle(); idle >= 0 {
				seconds := idle.Seconds()
				step.Idle = &seconds
			}
		}
		s.untold = append(s.untold, step)
	}
	s.returned = now
	if now.Sub(s.told) >= pulseEvery {
		l.tell(now, 0)
	}
}

// number counts steps over the whole job, equal on all ranks.
func (l *Loader) number(p *pending) uint64 {
	return uint64(p.epoch)*l.epoch.StepCount() + (p.share.Next-1)/uint64(l.options.Batch*l.options.Ranks)
}

// tell sends what is known of the loop, which is blocked for so long now.
func (l *Loader) tell(now time.Time, blocked time.Duration) {
	host, _ := os.Hostname() // for people; they live without
	p := &pb.Pulse{
		Rank: uint32(l.options.Rank), World: uint32(l.options.Ranks), Samples: uint32(l.options.Batch), Host: host,
		Steps: l.steps.untold, Ready: uint32(l.readyCount()), Window: uint32(l.window()),
	}
	if blocked > 0 {
		p.Blocked = durationpb.New(blocked)
	}
	l.steps.untold, l.steps.told = nil, now
	l.fleet.Pulse(p)
}

// readyCount is how many batches have come and were not taken.
func (l *Loader) readyCount() int {
	n := 0
	for _, p := range l.pending {
		n += len(p.result)
	}
	return n
}

// defaultWindowBytes bounds the memory of batches ahead of the loop.
const defaultWindowBytes = 1 << 30

// window is how many batches to have wanted or ready.
func (l *Loader) window() int {
	if l.options.Window > 0 {
		return l.options.Window
	}
	limit := l.options.WindowBytes
	if limit <= 0 {
		limit = defaultWindowBytes
	}
	most := limit / max(node.BatchBytes(l.info.Fields, l.options.Batch), 1)
	return max(min(l.fleet.Window(l.options.Batch), most), client.SpareBatches)
}
