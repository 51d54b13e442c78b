package server

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/dedup"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// binding is what OpenRequest, Start and ReplayRequest say of a job.
type binding interface {
	GetPlan() string
	GetNumerics() string
	GetRevisions() *pb.Revisions
}

// jobBinder binds plans to the data that they name.
type jobBinder struct {
	guard  *admission.Guard
	finder *snapshots.Finder
	engine Engine
	runs   *runs.Registry
	shared *dedup.Group
	tracer trace.Tracer // nil: none
	build  string       // of this node
}

// beginJob binds a plan to make batches of it for a trainer.
func (b *jobBinder) beginJob(ctx context.Context, start *pb.Start, trainer *runs.Trainer) (*Job, error) {
	j, err := b.bindPlan(ctx, start, snapshots.Look{})
	if err != nil {
		return nil, err
	}
	if err := j.checkVersions(start.GetVersions()); err != nil {
		j.Close()
		return nil, err
	}
	plan, who := j.maker.Plan(), admission.CallerOf(ctx)
	j.roots = []string{b.finder.RootOf(who, plan.Source, j.data)}
	if j.masks != nil {
		j.roots = append(j.roots, b.finder.RootOf(who, plan.Masks.Source, j.masks))
	}
	j.hash, j.shared, j.tracer = plan.Hash(), b.shared, b.tracer
	if j.maker.Refuses() { // others' batches may have what it must not get
		j.shared = nil
	}
	trainer.About = start.GetTrainer()
	j.run, err = b.runs.EnterTrainer(runs.Key{Identity: who.Name(), Job: start.GetJob(), Plan: j.hash}, trainer)
	j.trainer = trainer
	if err != nil {
		j.Close()
		return nil, explainMismatch(err)
	}
	return j, nil
}

// bindPlan binds a plan to data that it looks at so.
func (b *jobBinder) bindPlan(ctx context.Context, r binding, look snapshots.Look) (*Job, error) {
	if _, err := b.guard.RequireCaller(ctx); err != nil {
		return nil, err
	}
	if have, numerics := b.engine.Numerics(), r.GetNumerics(); numerics != "" && numerics != have {
		return nil, &DiffersError{Numerics: true, Pinned: filename.Brief(numerics), Found: have}
	}
	plan, err := pipeline.ParsePlan([]byte(r.GetPlan()))
	if err != nil {
		return nil, err
	}
	pinned := r.GetRevisions()
	if err := b.checkRevisions(plan, pinned); err != nil {
		return nil, err
	}
	j, err := b.bindData(ctx, plan, look)
	if err != nil {
		return nil, err
	}
	if j.build = b.build; pinned != nil {
		j.revisions = pinned
		j.maker.Pin(pinned.GetCodecs())
	}
	return j, nil
}

// bindData binds a plan to the data that it names.
func (b *jobBinder) bindData(ctx context.Context, plan *pipeline.Plan, look snapshots.Look) (*Job, error) {
	data, err := b.finder.OpenSource(ctx, admission.CallerOf(ctx), plan.Source, look)
	if err != nil {
		return nil, err
	}
	if pinned := plan.Source.Fingerprint; pinned != "" && pinned != data.Fingerprint() {
		data.Release()
		return nil, &DiffersError{Pinned: pinned, Found: data.Fingerprint()}
	}
	if plan.Masks != nil {
		return b.bindMasked(ctx, plan, data, look)
	}
	maker, err := b.engine.Prepare(plan, data.Data)
	if err != nil {
		if errors.Is(err, dataset.ErrLayout) { // look again next time
			data.Invalidate()
		}
		data.Release()
		return nil, snapshots.MarkMissing(plan.Source, err)
	}
	return &Job{maker: maker, data: data}, nil
}

// bindMasked is bindData for a plan with masks. data is released with the job, or here.
func (b *jobBinder) bindMasked(ctx context.Context, plan *pipeline.Plan, data *snapshots.Snapshot, look snapshots.Look) (*Job, error) {
	j := &Job{data: data}
	var err error
	if j.masks, err = b.finder.OpenSource(ctx, admission.CallerOf(ctx), plan.Masks.Source, look); err == nil {
		if pinned := plan.Masks.Fingerprint; pinned != "" && pinned != j.masks.Fingerprint() {
			err = &DiffersError{Pinned: pinned, Found: j.masks.Fingerprint()}
		} else {
			j.maker, err = b.engine.PrepareMasked(plan, data.Data, j.masks.Data)
		}
	}
	if err != nil {
		if errors.Is(err, dataset.ErrLayout) && j.masks != nil { // look again next time
			j.data.Invalidate()
			j.masks.Invalidate()
		}
		j.Close()
		return nil, snapshots.MarkMissing(plan.Source, err)
	}
	return j, nil
}

// revisionsOf are this node's, of a plan and of all formats.
func (b *jobBinder) revisionsOf(plan *pipeline.Plan) *pb.Revisions {
	own := b.engine.Revisions()
	return &pb.Revisions{Plan: own.Of(plan.Uses()), Codecs: pipeline.CodecUnits(own), Build: b.build}
}

// checkRevisions returns a *RevisionError if this node has other revisions of what a plan uses than those that a
// request pins, if it does.
func (b *jobBinder) checkRevisions(plan *pipeline.Plan, pinned *pb.Revisions) error {
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
