package runs

import (
	"fmt"
	"maps"
	"slices"

	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// MismatchError says that two trainers of a run have other revisions of a unit.
type MismatchError struct {
	// Unit as package revision has it, and its revisions: those of the trainers that are there, and of the one that
	// asks.
	Unit      string
	Has, Asks uint32
	// HasBuild and AsksBuild are their builds, as they say.
	HasBuild, AsksBuild string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("trainers of one run have revisions %d and %d of %s", e.Has, e.Asks, e.Unit)
}

// EnterTrainer is EnterRun for a trainer; LeaveTrainer takes the place of Leave. An error is a *MismatchError: the run
// has trainers that order or finish batches in another way. Those of them that are silent are ended and forgotten
// instead: their machine may be gone, and the connection does not know it yet. Whoever is there after all comes again,
// and is compared then.
func (b *Registry) EnterTrainer(k Key, t *Trainer) (*Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone, err := b.compareTrainers(k, t.About)
	if err != nil {
		return nil, err
	}
	a := b.takeRun(k)
	for _, other := range gone {
		other.End()
		a.forget(other)
	}
	a.trainers = append(a.trainers, t)
	return a, nil
}

// LeaveTrainer ends the use of a trainer; nil is nobody's.
func (a *Run) LeaveTrainer(t *Trainer) {
	a.registry.mu.Lock()
	a.forget(t)
	a.registry.mu.Unlock()
	a.Leave()
}

// forget takes a trainer out of those that others are compared with. Registry.mu is held.
func (a *Run) forget(t *Trainer) {
	a.trainers = slices.DeleteFunc(a.trainers, func(other *Trainer) bool { return other == t })
}

// CheckTrainer returns a *MismatchError if the run has trainers here that order or finish batches in another way, and
// are not silent.
func (b *Registry) CheckTrainer(k Key, t *pb.Trainer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := b.compareTrainers(k, t)
	return err
}

// compareTrainers compares a trainer with those of a run. Of those that differ it returns the silent ones, or an error
// if one is not. mu is held.
func (b *Registry) compareTrainers(k Key, t *pb.Trainer) (silent []*Trainer, err error) {
	a := b.byKey[k]
	if k.Job == "" || a == nil {
		return nil, nil
	}
	for _, other := range a.trainers {
		switch err := compareUnits(other.About, t); {
		case err == nil:
		case other.IsSilent == nil || !other.IsSilent():
			return nil, err
		default:
			silent = append(silent, other)
		}
	}
	return silent, nil
}

// compareUnits returns a *MismatchError if two trainers that tell their units have other revisions of one.
func compareUnits(has, asks *pb.Trainer) error {
	theirs, ours := revision.Set(has.GetUnits()), revision.Set(asks.GetUnits())
	if len(theirs) == 0 || len(ours) == 0 || maps.Equal(theirs, ours) {
		return nil
	}
	units := slices.Concat(theirs.Differing(ours), ours.Differing(theirs))
	if len(units) == 0 {
		return nil
	}
	unit := slices.Min(units)
	return &MismatchError{Unit: unit, Has: theirs[unit], Asks: ours[unit], HasBuild: has.GetBuild(), AsksBuild: asks.GetBuild()}
}
