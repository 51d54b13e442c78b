package client

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// What is told of builds. The functions of Fleet run on its goroutine, but for startOf.

// trainerOf tells of this side's build.
func trainerOf(build string) *pb.Trainer {
	own := revision.Build()
	return &pb.Trainer{Units: map[string]uint32{revision.Order: own[revision.Order], revision.LastHop: own[revision.LastHop]}, Build: build}
}

// buildOf is a node's build, or its version where it does not tell.
func buildOf(r *pb.OpenResponse) string {
	if build := r.GetRevisions().GetBuild(); build != "" {
		return build
	}
	if r.GetVersion() != "" {
		return r.Version
	}
	return "unknown"
}

// pin makes a node's answer the job's. The revisions of codecs are those that the job began with, if it goes on: a node that has other ones serves
// it, but for files of their formats.
func (j *job) pin(r *pb.OpenResponse) {
	if began := j.options.Revisions; began != nil {
		r, _ = proto.Clone(r).(*pb.OpenResponse)
		r.Revisions = &pb.Revisions{Plan: r.GetRevisions().GetPlan(), Codecs: began.GetCodecs(), Build: began.GetBuild()}
	}
	j.info.Store(r)
}

// startOf begins a stream to a node that may take part.
func (j *job) startOf(r *pb.OpenResponse) *pb.Start {
	return &pb.Start{Plan: r.Plan, Job: j.options.Job, Numerics: r.Numerics, Revisions: j.info.Load().GetRevisions(), Trainer: j.options.Trainer}
}

// otherRevisions returns a *RevisionError if a node has another revision of what the plan uses than the job. Of a state only the units are looked at
// that this plan has, too: a state is compared with the plan by whoever loads it.
func (j *job) otherRevisions(r *pb.OpenResponse) error {
	pinned := j.info.Load().GetRevisions()
	goesOn := pinned == nil
	if goesOn {
		pinned = j.options.Revisions
	}
	if pinned == nil {
		return nil
	}
	theirs, own := revision.Set(r.GetRevisions().GetPlan()), revision.Set(pinned.GetPlan())
	units := theirs.Differing(own)
	if goesOn {
		units = slices.DeleteFunc(units, func(u string) bool { return own[u] == 0 })
	} else {
		units = slices.Concat(units, own.Differing(theirs))
	}
	if len(units) == 0 {
		return nil
	}
	unit := slices.Min(units)
	e := &node.RevisionError{Unit: unit, Pinned: own[unit], Found: theirs[unit], PinnedBuild: pinned.GetBuild(), Build: buildOf(r)}
	e.Message = fmt.Sprintf("the plan takes %s: that node has revision %d (build %s), the job's is %d (build %s)", unit, e.Found, e.Build, e.Pinned, e.PinnedBuild)
	return e
}

// kindOf tells what of a node's answer decides bytes: equal kinds make equal batches.
func kindOf(r *pb.OpenResponse) string {
	return fmt.Sprintf("%s %s %v %v", r.Numerics, r.PlanHash, r.GetRevisions().GetPlan(), r.GetRevisions().GetCodecs())
}

// refusedRevision takes a node's refusal to make a want with another codec than the job's. Others are asked, but none that told of the same, and it
// for other wants.
func (fl *inFlight) refusedRevision(a *asked, err *node.RevisionError) {
	w, m := a.want, a.session.member
	w.unmade(m, err)
	for _, other := range fl.roster.live {
		if found, told := other.session.codecs[err.Unit]; told && found == err.Found && other != m {
			like := *err
			like.Build = other.session.build
			w.unmade(other, &like)
		}
	}
	if m.unfit++; !m.differs[err.Unit] {
		if m.differs == nil {
			m.differs = map[string]bool{}
		}
		m.differs[err.Unit] = true
		fl.roster.connected = fl.roster.connected.Add(-connectEvery) // others may be needed beside it
		fl.job.log.Warn("a node is of another build, and others are asked for batches that take what differs", "node", m.node.Addr(), "err", err)
	}
}

// unmade counts a node out that does not make the want in the job's way.
func (w *Want) unmade(m *member, err *node.RevisionError) {
	if w.tries == nil {
		w.tries = map[*member]try{}
	}
	w.tries[m] = try{failures: maxTries, err: err}
}

// forgive has a node that was opened anew asked for what it refused: it may be of another build now.
func (fl *inFlight) forgive(m *member) {
	m.unfit, m.differs = 0, nil
	for w := range fl.queue.all {
		var e *node.RevisionError
		if errors.As(w.tries[m].err, &e) {
			delete(w.tries, m)
		}
	}
}

// shuns reports whether a want goes to other nodes first, for a node has refused what came to it of late: the more in a row, the fewer are tried there.
func (m *member) shuns(w *Want) bool { return w.seq%(1<<min(m.unfit, maxUnfit)) != 0 }

// maxUnfit bounds how seldom a node is tried: with every 16th want.
const maxUnfit = 4

// unfit is how many nodes refused a want for their build.
func (r *roster) unfit() (n int) {
	for _, m := range r.live {
		if len(m.differs) > 0 {
			n++
		}
	}
	return n
}

// Revisions are those of the units that made a run's batches; docs/architecture.md.
type Revisions struct {
	// Plan and Codecs are the nodes', of what the plan uses and of all formats; Trainer are this side's.
	Plan    map[string]uint32 `json:"plan"`
	Codecs  map[string]uint32 `json:"codecs"`
	Trainer map[string]uint32 `json:"trainer"`
	// Build that had them, for people.
	Build string `json:"build"`
}

// RevisionsOf are a job's, as its plan was opened, on a trainer of certain units.
func RevisionsOf(info *pb.OpenResponse, trainer *pb.Trainer) *Revisions {
	r := info.GetRevisions()
	return &Revisions{Plan: r.GetPlan(), Codecs: r.GetCodecs(), Trainer: trainer.GetUnits(), Build: r.GetBuild()}
}

// Message is what nodes are told of it; nil of nil.
func (r *Revisions) Message() *pb.Revisions {
	if r == nil {
		return nil
	}
	return &pb.Revisions{Plan: r.Plan, Codecs: r.Codecs, Build: r.Build}
}
