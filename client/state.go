package client

import (
	"fmt"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// State is all that a run needs to go on elsewhere: with other nodes, another number of ranks or another batch size. It is the
// same on every rank, and batches that were prefetched do not count.
type State struct {
	Version     int    `json:"version"`
	OrderHash   string `json:"order_hash"`
	PixelHash   string `json:"pixel_hash"`
	Numerics    string `json:"numerics"`
	Fingerprint string `json:"fingerprint"`
	Epoch       uint32 `json:"epoch"`
	// Consumed counts the positions of the epoch that all ranks together have taken.
	Consumed uint64 `json:"consumed"`
}

// StateError says why a run cannot go on from a state.
type StateError struct{ Message string }

func (e *StateError) Error() string { return e.Message }

const stateVersion = 1

// State is the place behind the last batch that was delivered. Before Open it is what was restored, or empty.
func (l *Loader) State() State {
	if l.info == nil {
		if l.restore != nil {
			return *l.restore
		}
		return State{Version: stateVersion}
	}
	return State{
		Version: stateVersion, OrderHash: l.info.OrderHash, PixelHash: l.info.PixelHash, Numerics: l.info.Numerics,
		Fingerprint: l.info.Fingerprint, Epoch: l.cursor.epoch, Consumed: l.cursor.consumed,
	}
}

// Restore goes to a place that State told, in this run or another. Another order or other pixels than the plan's are a *StateError,
// here or, before Open, in Open.
func (l *Loader) Restore(s State) error {
	if s.Version != stateVersion {
		return &StateError{fmt.Sprintf("a state of version %d; this is version %d", s.Version, stateVersion)}
	}
	if l.info != nil {
		if err := s.check(l.info); err != nil {
			return err
		}
		l.reset()
	}
	l.restore = &s
	l.cursor = cursor{s.Epoch, s.Consumed}
	return nil
}

func (s *State) check(info *pb.OpenResponse) error {
	for _, h := range []struct{ what, state, plan string }{
		{"the data is", s.Fingerprint, info.Fingerprint},
		{"the order of samples (data, seed, shuffle) is", s.OrderHash, info.OrderHash},
		{"the pixels (transforms, seed) are", s.PixelHash, info.PixelHash},
		{"the nodes' numerics are", s.Numerics, info.Numerics},
	} {
		if h.state != "" && h.state != h.plan {
			return &StateError{fmt.Sprintf("cannot resume: %s not that of the state (%.12s, now %.12s)", h.what, h.state, h.plan)}
		}
	}
	return nil
}
