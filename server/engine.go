package server

import (
	"context"
	"fmt"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	"github.com/feedwater-io/feedwater/pipeline/transform"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// Engine is what a node makes batches with: a pipeline (NewEngine), or a stand-in where pixels do not matter.
type Engine interface {
	snapshots.Scanner
	// Prepare binds a plan to a snapshot of Scan.
	Prepare(plan *pipeline.Plan, data snapshots.Data) (Maker, error)
	// PrepareMasked binds a plan with masks to two snapshots of Scan, pictures and masks.
	PrepareMasked(plan *pipeline.Plan, data, masks snapshots.Data) (Maker, error)
	Numerics() string
	// Revisions are the units of the engine's build. Not to be changed.
	Revisions() revision.Set
	Kernels() string
	Workers() int
	// Queued is the core-seconds of work that is queued.
	Queued() float64
	// Ahead is the core-seconds of work before a further want of an account.
	Ahead(*share.Account) float64
	// Work is what was done since the start.
	Work() pipeline.Work
}

// A Storer is an Engine that knows which roots its files lie in, and whether their storage answers.
type Storer interface {
	Storage() *bulkhead.Roots
}

// Maker makes the batches of a plan; see pipeline.Job.
type Maker interface {
	Plan() *pipeline.Plan
	Fields() []batch.Field
	Ops() []transform.Info
	// Pin has only files made whose codecs are of these revisions, before the first want; see pipeline.Job. Refuses
	// reports whether that leaves some out.
	Pin(codecs revision.Set)
	Refuses() bool
	Layout(count int) (fields []batch.Field, bytes int)
	Submit(*pipeline.Want) error
	// Cancel gives a submitted want up: its Done comes soon, unless it came before.
	Cancel(*pipeline.Want)
	// Hasten makes what is left of a submitted want due earlier, for a step of another account. A due that is not
	// earlier changes nothing.
	Hasten(w *pipeline.Want, a *share.Account, step uint64, due time.Time)
	Replay(ctx context.Context, n batch.Name, most int, a *share.Account) ([]pipeline.Sample, error)
}

// NewEngine makes batches with a pipeline. The pipeline is not closed by the server.
func NewEngine(p *pipeline.Pipeline, o dataset.Options) Engine { return engine{p, o} }

type engine struct {
	*pipeline.Pipeline
	options dataset.Options
}

// Scan implements Engine. Where the storage does not answer it returns, and the scan is left to itself.
func (e engine) Scan(ctx context.Context, folder snapshots.Folder, anew bool, progress func(files int)) (snapshots.Data, error) {
	o := e.options
	o.Beneath, o.Table, o.Columns = folder.Beneath, folder.Table, folder.Columns
	o.Refresh = anew
	o.Flat, o.Empty = true, true // some plans take such folders, see Prepare
	o.Progress = func(files int) {
		progress(files)
		if e.options.Progress != nil {
			e.options.Progress(files)
		}
	}
	s, err := pipeline.OpenFolder(ctx, e.Storage(), folder.Path, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Same implements Engine. Storage that does not answer cannot say so.
func (e engine) Same(earlier, later snapshots.Data) bool {
	a, ok := earlier.(*dataset.Snapshot)
	b, also := later.(*dataset.Snapshot)
	if !ok || !also {
		return false
	}
	root := e.Storage().Of(b.Path())
	if a.Generation() != b.Generation() {
		return false // what the earlier one has open may hang for ever
	}
	ask := func(func()) (bool, error) { return a.Same(b), nil }
	same, err := bulkhead.DoOnce(context.Background(), root, "look at the folder", ask, nil, func() func() error {
		return func() error { return dataset.Look(context.Background(), b.Path()) }
	})
	return same && err == nil
}

func (e engine) Prepare(plan *pipeline.Plan, data snapshots.Data) (Maker, error) {
	s, ok := data.(*dataset.Snapshot)
	if !ok {
		return nil, fmt.Errorf("a pipeline cannot read a %T", data)
	}
	if err := s.CheckClasses(); err != nil {
		return nil, err
	}
	if err := checkEmpty(plan, s); err != nil {
		return nil, err
	}
	j, err := e.Pipeline.Prepare(plan, s)
	if err != nil {
		return nil, err
	}
	return job{j}, nil
}

// checkEmpty refuses classes without samples, unless the plan takes them.
func checkEmpty(plan *pipeline.Plan, all ...*dataset.Snapshot) error {
	if plan.Source.AllowEmpty {
		return nil
	}
	for _, s := range all {
		if err := s.CheckEmpty(); err != nil {
			return err
		}
	}
	return nil
}

// PrepareMasked implements Engine.
func (e engine) PrepareMasked(plan *pipeline.Plan, data, masks snapshots.Data) (Maker, error) {
	s, ok := data.(*dataset.Snapshot)
	m, also := masks.(*dataset.Snapshot)
	if !ok || !also {
		return nil, fmt.Errorf("a pipeline cannot read a %T with masks in a %T", data, masks)
	}
	if err := checkEmpty(plan, s, m); err != nil {
		return nil, err
	}
	j, err := e.Pipeline.PrepareMasked(plan, s, m)
	if err != nil {
		return nil, err
	}
	return job{j}, nil
}

type job struct{ *pipeline.Job }

func (job) Cancel(w *pipeline.Want) { w.Cancel() }

func (job) Hasten(w *pipeline.Want, a *share.Account, step uint64, due time.Time) {
	w.Hasten(a, step, due)
}
