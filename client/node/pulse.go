package node

import pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"

// Pulse implements Stream.
func (s *stream) Pulse(p *pb.Pulse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.pulse = mergePulses(s.pulse, p)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// mostSteps is how many steps wait to be sent to a node at most; the oldest are left out.
const mostSteps = 512

// mergePulses is p, with the steps of an earlier pulse that was not sent. p is other streams' too, and stays as it is.
func mergePulses(earlier, p *pb.Pulse) *pb.Pulse {
	if earlier == nil {
		return p
	}
	steps := append(append([]*pb.Step(nil), earlier.Steps...), p.Steps...)
	return &pb.Pulse{
		Rank: p.Rank, World: p.World, Steps: steps[max(0, len(steps)-mostSteps):], Samples: p.Samples,
		Ready: p.Ready, Window: p.Window, Blocked: p.Blocked, Host: p.Host,
	}
}
