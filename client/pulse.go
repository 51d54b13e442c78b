package client

import pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"

// Pulse tells all nodes that are connected how the training loop fares. It does not block, and changes no batch. The pulse is the
// fleet's from then on.
func (f *Fleet) Pulse(p *pb.Pulse) {
	f.job.pacing.addPulse(p)
	if f.job.options.Tell != nil {
		f.job.options.Tell(p)
	}
	f.job.inbox.post(func() {
		for _, m := range f.roster.live {
			m.session.stream.Pulse(p)
		}
	})
}
