package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/dedup"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/server/tracing"
)

// Job is a plan bound to this machine's data: what a Fetch stream works for, and what makes the server of this process
// a node without any wire. It may be used from many goroutines at once.
type Job struct {
	maker Maker
	data  *snapshots.Snapshot
	masks *snapshots.Snapshot // nil: none
	run   *runs.Run           // nil while it makes no batches
	roots []string            // those that data and masks were found in; nil likewise
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

// versions are digests of the stores that the data lies in and of the versions there, of pictures and masks together;
// empty where all are files.
func (j *Job) versions() (store, versions string) {
	store, versions = j.data.Versions()
	if j.masks == nil {
		return store, versions
	}
	other, others := j.masks.Versions()
	if store+other == "" {
		return "", ""
	}
	return digestBoth(store, other), digestBoth(versions, others)
}

// listing is a digest of all that the job's lists say; empty: they do not tell whether they are the same.
func (j *Job) listing() string {
	if j.masks == nil {
		return j.data.Listing()
	}
	data, masks := j.data.Listing(), j.masks.Listing()
	if data == "" || masks == "" {
		return ""
	}
	return digestBoth(data, masks)
}

// Trouble is what the server that a job's data lies on does not answer, in words; empty: it answers, or the data are files.
func (j *Job) Trouble() string {
	for _, s := range []*snapshots.Snapshot{j.data, j.masks} {
		if s == nil {
			continue
		}
		if at, ok := s.Data.(interface{ Path() string }); ok {
			if trouble := dataset.Trouble(at.Path(), dataset.LongAsked); trouble != nil {
				return clipText(trouble.Error())
			}
		}
	}
	return ""
}

// checkVersions returns a *DiffersError if the data has other versions than those that a request pins, if it does.
func (j *Job) checkVersions(pinned string) error {
	if _, found := j.versions(); pinned != "" && pinned != found {
		return &DiffersError{Versions: true, Pinned: filename.Brief(pinned), Found: found}
	}
	return nil
}

// digestBoth is a digest of two.
func digestBoth(a, b string) string {
	sum := sha256.Sum256([]byte(a + " " + b))
	return hex.EncodeToString(sum[:])
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

// traceWant traces a want that is about to be submitted, if its trainer does, until Done.
func (j *Job) traceWant(w *Want, name batch.Name) {
	s := tracing.Begin(j.tracer, w.Traceparent, time.Now())
	if s == nil {
		return
	}
	s.SetName(name)
	w.slowest = tracing.SlowestSamples
	done := w.Done
	w.Done = func(m Made) {
		s.End(tracing.Outcome{
			Failure: m.Failure, Header: m.Header, Bytes: len(m.Data), Shared: m.Shared, Begun: m.begun, Slowest: m.slowest,
		})
		done(m)
	}
}

// traceRefusal traces a want that was not taken on.
func (j *Job) traceRefusal(traceparent string, at time.Time, err error) {
	tracing.Begin(j.tracer, traceparent, at).End(tracing.Outcome{Failure: toFailure(err)})
}
