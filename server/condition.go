package server

import (
	"slices"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// condition is how the node is, for this stream's trainer.
func (t *stream) condition() *pb.Notice {
	n := &pb.Notice{Draining: t.server.draining(), Queued: t.server.engine.Queued(), Heard: t.heard.Load()}
	t.mu.Lock()
	n.Wants = uint32(len(t.wants))
	for id, w := range t.wants {
		if w.begun.Load() {
			n.Begun = append(n.Begun, id)
		}
	}
	t.mu.Unlock()
	if n.Wants == 0 {
		return n
	}
	slices.Sort(n.Begun)
	stake, speed := t.job.stake, t.server.speed() // there were wants, so there is a job
	n.AheadSeconds, n.SampleSeconds = t.server.engine.Ahead(stake.share)/speed, stake.spent()/speed
	return n
}

// speed is the core-seconds that the node does in a second with work at hand, as it was measured last; its cores until then.
func (s *Server) speed() float64 {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	if e := s.wanted.answer.Effective; e > 0 {
		return e
	}
	return float64(max(s.engine.Workers(), 1))
}
