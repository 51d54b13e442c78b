package server

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/runs"
)

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

// revisionsOf are this node's, of a plan and of all formats.
func (b *planBinder) revisionsOf(plan *pipeline.Plan) *pb.Revisions {
	own := b.engine.Revisions()
	return &pb.Revisions{Plan: own.Of(plan.Uses()), Codecs: pipeline.CodecUnits(own), Build: b.build}
}

// checkRevisions returns a *RevisionError if this node has other revisions of what a plan uses than those that a request pins, if it does.
func (b *planBinder) checkRevisions(plan *pipeline.Plan, pinned *pb.Revisions) error {
	if pinned == nil {
		return nil
	}
	own, others := b.engine.Revisions().Of(plan.Uses()), revision.Set(pinned.GetPlan())
	units := slices.Concat(own.Differing(others), others.Differing(own))
	if len(units) == 0 {
		return nil
	}
	unit := slices.Min(units)
	return &RevisionError{
		Unit: filename.Brief(unit), Pinned: others[unit], Found: own[unit],
		PinnedBuild: filename.Brief(pinned.GetBuild()), Build: b.build,
	}
}

// explainError adds to a pipeline's error which builds it is about.
func (j *Job) explainError(err error) error {
	var other *pipeline.RevisionError
	if !errors.As(err, &other) {
		return err
	}
	return &RevisionError{
		Key: other.Key, Index: other.Index, Unit: other.Unit, Pinned: other.Pinned, Found: other.Found,
		PinnedBuild: filename.Brief(j.revisions.GetBuild()), Build: j.build,
	}
}

// explainMismatch is the *RevisionError for a run whose trainers are of several builds; other errors come back as they are.
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
