package loader

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// State is all that a run needs to go on elsewhere: with other nodes, another number of ranks or another batch size. It
// is the same on every rank, and batches that were prefetched do not count.
type State struct {
	Version     int    `json:"version"`
	OrderHash   string `json:"order_hash"`
	PixelHash   string `json:"pixel_hash"`
	Numerics    string `json:"numerics"`
	Fingerprint string `json:"fingerprint"`
	// Revisions of what made the batches; nil: any go on with it.
	Revisions *client.Revisions `json:"revisions,omitempty"`
	// Stores are those of the data; empty: other versions of its objects go on with it.
	Stores map[string]string `json:"stores,omitempty"`
	Epoch  uint32            `json:"epoch"`
	// Consumed counts the positions of the epoch that all ranks together have taken.
	Consumed uint64 `json:"consumed"`
}

// StateError says why a run cannot go on from a state.
type StateError struct{ Message string }

func (e *StateError) Error() string { return e.Message }

const stateVersion = 2

// State is the place behind the last batch that was delivered. Before Open it is what was restored, or empty.
func (l *Loader) State() State {
	if l.info == nil {
		if l.restore != nil {
			return *l.restore
		}
		return State{Version: stateVersion}
	}
	revisions, stores := l.fleet.Pins()
	return State{
		Version: stateVersion, OrderHash: l.info.OrderHash, PixelHash: l.info.PixelHash, Numerics: l.info.Numerics,
		Fingerprint: l.info.Fingerprint, Revisions: revisions, Stores: stores,
		Epoch: l.cursor.epoch, Consumed: l.cursor.consumed,
	}
}

// Restore goes to a place that State told, in this run or another. Another order, other pixels or revisions than the
// plan's are a *StateError, here or, before Open, in Open. A state of version 1, which told no revisions, is taken if
// its numerics are those of a build that is known.
func (l *Loader) Restore(s State) error {
	s, err := s.current()
	if err != nil {
		return err
	}
	if l.info != nil {
		if err := s.check(l.info, l.fleet.Trainer()); err != nil {
			return err
		}
		l.reset()
	}
	l.restore = &s
	l.cursor = cursor{s.Epoch, s.Consumed}
	return nil
}

// current is a state of this version that says the same.
func (s State) current() (State, error) {
	switch {
	case s.Version == stateVersion:
		return s, nil
	case s.Version != 1:
		return s, &StateError{fmt.Sprintf("a state of version %d; this is version %d", s.Version, stateVersion)}
	}
	s.Version = stateVersion
	if s.Numerics == "" { // nothing was done before it was told, or other bytes are meant
		return s, nil
	}
	units, known := revision.OfNumerics(s.Numerics)
	if !known {
		return s, &StateError{fmt.Sprintf("a state of version 1 of a build that is not known here (numerics %.12s): "+
			"without Numerics it goes on with other bytes", s.Numerics)}
	}
	s.Revisions = &client.Revisions{Plan: units, Codecs: units, Trainer: units, Build: revision.BeforeRevisions}
	return s, nil
}

func (s *State) check(info *pb.OpenResponse, trainer *pb.Trainer) error {
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
	if versions, known := s.Stores[info.GetStore()]; known && versions != info.GetVersions() {
		return &StateError{"cannot resume: objects were replaced in the bucket by others of the same names and sizes; a state without Stores goes on with these"}
	}
	return s.checkRevisions(info, trainer)
}

// checkRevisions compares what the plan and this side use. Of codecs a job that goes on keeps those of its state.
func (s *State) checkRevisions(info *pb.OpenResponse, trainer *pb.Trainer) error {
	if s.Revisions == nil {
		return nil
	}
	now := client.RevisionsOf(info, trainer)
	for _, c := range []struct {
		state, now revision.Set
		build      string
	}{
		{s.Revisions.Trainer, now.Trainer, trainer.GetBuild()},
		{s.Revisions.Plan, now.Plan, now.Build},
	} {
		units := c.now.Differing(c.state)
		if s.Revisions.Build != revision.BeforeRevisions { // which stands for units that no plan uses all of
			units = slices.Concat(units, c.state.Differing(c.now))
		}
		if len(units) > 0 {
			return &StateError{fmt.Sprintf("cannot resume: %s was of revision %d (build %s), and is of %d (build %s)",
				units[0], c.state[units[0]], s.Revisions.Build, c.now[units[0]], c.build)}
		}
	}
	return nil
}
