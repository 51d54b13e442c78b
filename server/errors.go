package server

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// errDraining says that a node takes no more work.
var errDraining = snapshots.ErrClosed

// DiffersError says that a node has other data, or other numerics, than a request pins.
type DiffersError struct {
	// Numerics: it is those that differ, not the data.
	Numerics bool
	// Versions: it is those of objects with the same names and sizes.
	Versions      bool
	Pinned, Found string
}

func (e *DiffersError) Error() string {
	what := "data"
	if e.Numerics {
		what = "numerics"
	}
	if e.Versions {
		what = "versions of objects"
	}
	return fmt.Sprintf("this node's %s: %.12s; the request pins %.12s", what, e.Found, e.Pinned)
}

// VersionError says that a trainer is too old for a node.
type VersionError struct {
	// Spoken is the trainer's revision of the contract, Oldest the first that the node serves.
	Spoken, Oldest uint32
	// Trainer is the trainer's build, empty where it is too old to tell, Build the node's.
	Trainer, Build string
}

func (e *VersionError) Error() string {
	trainer := "a build that does not tell its name"
	if e.Trainer != "" {
		trainer = "build " + e.Trainer
	}
	return fmt.Sprintf("the trainer (%s) speaks protocol %d, and this node (build %s) serves none before %d: update feedwater on the trainer, or use older nodes",
		trainer, e.Spoken, e.Build, e.Oldest)
}

// ProtocolError says how a trainer broke the rules of feedwater.proto.
type ProtocolError struct{ Message string }

func (e *ProtocolError) Error() string { return e.Message }

// StalledError says that a trainer took no data for too long.
type StalledError struct{ After time.Duration }

func (e *StalledError) Error() string {
	return fmt.Sprintf("the trainer took no data for %s", e.After.Round(time.Second))
}

// SilentError says that a stream's trainer was not heard for so long that a trainer of another build could take over
// its job.
type SilentError struct{ After time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("nothing came from the trainer for %s, and a trainer of another build has taken over its job", e.After)
}

// RevisionError says that this node has another revision of a unit than a job, or that two trainers of a job have.
type RevisionError struct {
	// Key of the file that takes the unit, with its index; empty: the plan does.
	Key   string
	Index uint64
	// Unit as package revision has it, and its revisions: the job's, and the one found here.
	Unit          string
	Pinned, Found uint32
	// PinnedBuild has the job's revision, Build the other.
	PinnedBuild, Build string
	// Trainer: it is a trainer's unit, and no node's.
	Trainer bool
}

func (e *RevisionError) Error() string {
	pinned, found := revisionOf(e.Pinned, e.PinnedBuild), revisionOf(e.Found, e.Build)
	switch {
	case e.Trainer:
		return fmt.Sprintf("this trainer has %s of %s, and the other trainers of its job have %s: the ranks of a job have to be of one build, "+
			"and another job needs another name", e.Unit, found, pinned)
	case e.Key != "":
		return fmt.Sprintf("%s (index %d) takes %s: this node has %s, the job's is %s", e.Key, e.Index, e.Unit, found, pinned)
	}
	return fmt.Sprintf("the plan takes %s: this node has %s, the job's is %s", e.Unit, found, pinned)
}

// revisionOf is a revision in words.
func revisionOf(n uint32, build string) string {
	if build == "" {
		build = "unknown"
	}
	if n == 0 {
		return fmt.Sprintf("none of it (build %s)", build)
	}
	return fmt.Sprintf("revision %d (build %s)", n, build)
}

func (e *RevisionError) errorMetadata() map[string]string {
	return map[string]string{
		"unit": e.Unit, "pinned": strconv.Itoa(int(e.Pinned)), "found": strconv.Itoa(int(e.Found)),
		"pinned_build": e.PinnedBuild, "build": e.Build,
	}
}

// explainMismatch is the *RevisionError for a run whose trainers are of several builds; other errors come back as they
// are.
func explainMismatch(err error) error {
	var e *runs.MismatchError
	if !errors.As(err, &e) {
		return err
	}
	return &RevisionError{
		Trainer: true, Unit: filename.Brief(e.Unit), Pinned: e.Has, Found: e.Asks,
		PinnedBuild: filename.Brief(e.HasBuild), Build: filename.Brief(e.AsksBuild),
	}
}
