package runs

import (
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// MismatchError says that two trainers of a run have other revisions of a unit.
type MismatchError struct {
	// Unit as package revision has it, and its revisions: those of the trainers that are there, and of the one that asks.
	Unit      string
	Has, Asks uint32
	// HasBuild and AsksBuild are their builds, as they say.
	HasBuild, AsksBuild string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("trainers of one run have revisions %d and %d of %s", e.Has, e.Asks, e.Unit)
}

// EnterTrainer is EnterRun for a trainer of certain units. An error is a *MismatchError: the run has trainers of others.
func (b *Registry) EnterTrainer(k Key, t *pb.Trainer) (*Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.compareTrainer(k, t); err != nil {
		return nil, err
	}
	a := b.takeRun(k)
	if a.trainer == nil {
		a.trainer = t
	}
	return a, nil
}

// CheckTrainer returns a *MismatchError if the run has trainers here that order or finish batches in another way.
func (b *Registry) CheckTrainer(k Key, t *pb.Trainer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.compareTrainer(k, t)
}

// compareTrainer is CheckTrainer with mu held.
func (b *Registry) compareTrainer(k Key, t *pb.Trainer) error {
	a := b.byKey[k]
	if k.Job == "" || a == nil || len(a.trainer.GetUnits()) == 0 || len(t.GetUnits()) == 0 {
		return nil
	}
	theirs, ours := revision.Set(a.trainer.GetUnits()), revision.Set(t.GetUnits())
	units := slices.Concat(theirs.Differing(ours), ours.Differing(theirs))
	if len(units) == 0 {
		return nil
	}
	unit := slices.Min(units)
	return &MismatchError{
		Unit: unit, Has: theirs[unit], Asks: ours[unit], HasBuild: a.trainer.GetBuild(), AsksBuild: t.GetBuild(),
	}
}
