package server

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/dedup"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// Job is a plan bound to this machine's data: what a Fetch stream works for, and what makes the server of this process a node
// without any wire. It may be used from many goroutines at once.
type Job struct {
	maker Maker
	data  *snapshots.Snapshot
	masks *snapshots.Snapshot // nil: none
	run   *runs.Run           // nil while it makes no batches
	// trainer is who it works for; nil in a Replay.
	trainer *runs.Trainer
	// shared are batches that jobs of the same hash have in common; nil: none are.
	shared *dedup.Group
	hash   string
	tracer trace.Tracer // nil: none
	// revisions are those that the request pins, nil: none; build is this node's.
	revisions *pb.Revisions
	build     string
}

// Want asks a job for one batch. It is used once.
type Want struct {
	Name *pb.Name
	// Request says where the batch goes, which belongs to the job from Submit to Done, and when it is due.
	batch.Request
	// Charge and Checksum: see pipeline.Want.
	Charge   func(bytes int) bool
	Checksum bool
	// Done is called exactly once, from any goroutine. It must not block. Afterwards nobody writes Dst.
	Done func(Made)

	slowest int // how many samples Made.slowest tells of
	inner   pipeline.Want
	waiter  dedup.Waiter
}

// Made is what became of a want.
type Made struct {
	// Failure is nil if the batch was made; else Err is what it was made of.
	Failure *pb.Failure
	Err     error
	Header  *pb.Header
	// Data is the batch, in Dst or in what Grow gave.
	Data []byte
	// Shared tells that another want had it made.
	Shared bool

	// What it took; only the pipeline's own batches have it.
	begun   time.Time
	slowest []pipeline.Timing
}

// Job binds a plan to the data that it names. The caller closes it after the last Done.
func (s *Server) Job(ctx context.Context, start *pb.Start) (*Job, error) {
	j, err := s.beginJob(ctx, start, &runs.Trainer{})
	return j, toStatus(err)
}

// beginJob binds a plan to make batches of it for a trainer.
func (s *Server) beginJob(ctx context.Context, start *pb.Start, trainer *runs.Trainer) (*Job, error) {
	j, err := s.plans.bindPlan(ctx, start, false)
	if err != nil {
		return nil, err
	}
	j.hash, j.shared, j.tracer = j.maker.Plan().Hash(), s.shared, s.options.Tracer
	if j.maker.Refuses() { // others' batches may have what it must not get
		j.shared = nil
	}
	trainer.About = start.GetTrainer()
	j.run, err = s.shares.EnterTrainer(runs.Key{Identity: admission.CallerOf(ctx).Name(), Job: start.GetJob(), Plan: j.hash}, trainer)
	j.trainer = trainer
	if err != nil {
		j.Close()
		return nil, explainMismatch(err)
	}
	return j, nil
}

// binding is what OpenRequest, Start and ReplayRequest say of a job.
type binding interface {
	GetPlan() string
	GetNumerics() string
	GetRevisions() *pb.Revisions
}

// planBinder binds plans to the data that they name.
type planBinder struct {
	guard  *admission.Guard
	finder *snapshots.Finder
	engine Engine
	build  string // of this node
}

// bindPlan binds a plan; with again set it looks at the data again even if a snapshot that the plan pins is open.
func (b *planBinder) bindPlan(ctx context.Context, r binding, again bool) (*Job, error) {
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
	j, err := b.bindData(ctx, plan, again)
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
func (b *planBinder) bindData(ctx context.Context, plan *pipeline.Plan, again bool) (*Job, error) {
	data, err := b.finder.OpenSource(ctx, admission.CallerOf(ctx), plan.Source, again)
	if err != nil {
		return nil, err
	}
	if pinned := plan.Source.Fingerprint; pinned != "" && pinned != data.Fingerprint() {
		data.Release()
		return nil, &DiffersError{Pinned: pinned, Found: data.Fingerprint()}
	}
	if plan.Masks != nil {
		return b.bindMasked(ctx, plan, data, again)
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

// bindMasked is bind for a plan with masks. data is released with the job, or here.
func (b *planBinder) bindMasked(ctx context.Context, plan *pipeline.Plan, data *snapshots.Snapshot, again bool) (*Job, error) {
	j := &Job{data: data}
	masker, ok := b.engine.(Masker)
	if !ok {
		data.Release()
		return nil, &batch.PlanError{Field: "masks", Message: "are not offered by this node"}
	}
	var err error
	if j.masks, err = b.finder.OpenSource(ctx, admission.CallerOf(ctx), *plan.Masks, again); err == nil {
		if pinned := plan.Masks.Fingerprint; pinned != "" && pinned != j.masks.Fingerprint() {
			err = &DiffersError{Pinned: pinned, Found: j.masks.Fingerprint()}
		} else {
			j.maker, err = masker.PrepareMasked(plan, data.Data, j.masks.Data)
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

// Close lets go of the data.
func (j *Job) Close() {
	j.data.Release()
	if j.masks != nil {
		j.masks.Release()
	}
	if j.run != nil {
		j.run.LeaveTrainer(j.trainer)
	}
}

// Submit queues a want. A name that is not one of this job's is a Failure.
func (j *Job) Submit(w *Want) {
	name, err := toName(w.Name)
	if err != nil {
		w.Done(Made{Failure: toFailure(err), Err: err})
		return
	}
	j.traceWant(w, name)
	j.submitName(w, name)
}

// submitName is Submit for a name that was converted.
func (j *Job) submitName(w *Want, name batch.Name) {
	if err := j.submitWant(w, name); err != nil {
		w.Done(Made{Failure: toFailure(err), Err: err})
	}
}

func (j *Job) submitWant(w *Want, name batch.Name) error {
	data := w.Dst
	w.inner = pipeline.Want{Name: name, Request: w.Request, Charge: w.Charge, Checksum: w.Checksum, Slowest: w.slowest}
	w.inner.Step = 0 // of no account
	if j.run != nil {
		w.inner.Account, w.inner.Step = j.run.Account, j.run.StepOf(w.Step)
	}
	arrived := time.Now()
	if w.Grow != nil {
		w.inner.Grow = func(bytes int) []byte {
			b := w.Grow(bytes)
			if b != nil {
				data = b
			}
			return b
		}
	}
	count := name.Len()
	w.inner.Done = func(r pipeline.Result) {
		r.Err = j.explainError(r.Err)
		if changed := (*dataset.ChangedError)(nil); errors.As(r.Err, &changed) {
			j.data.Invalidate()
			if j.masks != nil {
				j.masks.Invalidate()
			}
		}
		if r.Err != nil {
			w.Done(Made{Failure: toFailure(r.Err), Err: r.Err, begun: r.Begun, slowest: r.Slowest})
			return
		}
		if j.run != nil {
			j.run.AddBatch(r.CoreSeconds, count)
		}
		header := fromHeader(&r, count)
		header.QueuedSeconds = max(r.Begun.Sub(arrived).Seconds(), 0)
		w.Done(Made{Header: header, Data: data[:r.Bytes], begun: r.Begun, slowest: r.Slowest})
	}
	return j.maker.Submit(&w.inner)
}

// Cancel gives a submitted want up; its Done comes soon, unless it came before.
func (j *Job) Cancel(w *Want) {
	if !j.shared.Cancel(&w.waiter) {
		j.maker.Cancel(&w.inner)
	}
}

// batchBytes is what a batch takes, without samples of differing sizes.
func (j *Job) batchBytes(name batch.Name) int {
	_, n := j.maker.Layout(name.Len())
	return n
}
