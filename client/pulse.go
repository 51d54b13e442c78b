package client

import pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"

// Pulse tells all nodes that are connected how the training loop fares. It does not block, and changes no batch. The pulse is the
// fleet's from then on.
func (f *Fleet) Pulse(p *pb.Pulse) {
	f.loop.told(p)
	if f.options.Tell != nil {
		f.options.Tell(p)
	}
	f.inbox.post(func() {
		for _, m := range f.live {
			m.session.stream.Pulse(p)
		}
	})
}
