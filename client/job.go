package client

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client/internal/storepin"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// job is what the parts of a fleet share: what it was made for, what it pinned, and its goroutines.
type job struct {
	options Options
	log     *slog.Logger
	inbox   *inbox
	pacing  pacing
	info    atomic.Pointer[pb.OpenResponse] // that the job pins
	stores  *storepin.Pins
	epoch   time.Time // that package pick's seconds are counted from; of the fleet's goroutine

	ctx        context.Context
	cancel     context.CancelFunc
	goroutines sync.WaitGroup
}

func newJob(o Options) *job {
	j := &job{options: o, log: o.Log, inbox: newInbox(), stores: storepin.New(o.Stores), epoch: time.Now()}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// inbox carries events to the goroutine that owns a fleet's state. Posting never blocks, so it may be done from any
// callback.
type inbox struct {
	wake chan struct{}

	mu     sync.Mutex
	closed bool
	events []func()
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post queues an event; false when nobody will handle it any more.
func (b *inbox) post(event func()) bool {
	if !b.postDeferred(event) {
		return false
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// postDeferred is post for an event that changes nothing until the next decision: it is handled right before that,
// within a tick.
func (b *inbox) postDeferred(event func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.events = append(b.events, event)
	}
	return !b.closed
}

// takeEvents empties the inbox. With last set, nothing is accepted afterwards.
func (b *inbox) takeEvents(last bool) []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events, b.closed = nil, b.closed || last
	return events
}

// handleEvents does what has been posted; after the last time nothing more may be.
func (b *inbox) handleEvents(last bool) {
	for _, event := range b.takeEvents(last) {
		event()
	}
}

// clock is a time as package pick takes it.
func (j *job) clock(t time.Time) float64 { return t.Sub(j.epoch).Seconds() }

// isResumed reports whether the options say all that a job pins. A state whose Numerics and
// Revisions were left out, to go on with other bytes, says its fingerprint alone.
func (j *job) isResumed() bool {
	o := &j.options
	return o.Fingerprint != "" && o.Numerics != "" && o.Revisions != nil
}

// pinStore pins the store that a node reads which takes part. One that the job did not know, with other versions than those
// that it knew have, is a copy of the data or the same store by another name: people are told.
func (j *job) pinStore(addr string, r *pb.OpenResponse) {
	if other := j.stores.Add(addr, r); other != "" {
		j.log.Warn("nodes read two servers or buckets, where objects have other versions: if it is one by two names, objects were replaced, and batches mix both; "+
			"give all nodes the same endpoint=", "node", addr, "other", other)
	}
}

// pinAnswer makes a node's answer the job's. The revisions of codecs are those that the job began with, if it goes on:
// a node that has other ones serves it, but for files of their formats.
func (j *job) pinAnswer(r *pb.OpenResponse) {
	if began := j.options.Revisions; began != nil {
		r, _ = proto.Clone(r).(*pb.OpenResponse)
		r.Revisions = &pb.Revisions{Plan: r.GetRevisions().GetPlan(), Codecs: began.GetCodecs(), Build: began.GetBuild()}
	}
	j.info.Store(r)
}

// newStart begins a stream to a node that may take part.
func (j *job) newStart(r *pb.OpenResponse) *pb.Start {
	return &pb.Start{Plan: r.Plan, Job: j.options.Job, Numerics: r.Numerics, Revisions: j.info.Load().GetRevisions(), Trainer: j.options.Trainer, Versions: r.GetVersions()}
}

// checkRevisions returns a *RevisionError if a node has another revision of what the plan uses than the job. Of a state
// only the units are looked at that this plan has, too: a state is compared with the plan by whoever loads it.
func (j *job) checkRevisions(r *pb.OpenResponse) error {
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

// kindOf tells what of a node's answer decides bytes: equal kinds make equal batches.
func kindOf(r *pb.OpenResponse) string {
	return fmt.Sprintf("%s %s %v %v", r.Numerics, r.PlanHash, r.GetRevisions().GetPlan(), r.GetRevisions().GetCodecs())
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

// pacing is what a fleet knows of the training loop that it feeds, by its pulses, and of how long batches take.
type pacing struct {
	mu     sync.Mutex
	pace   control.Pace
	window control.Window
	ready  int // batches in the trainer's memory
}

// addPulse takes a pulse.
func (p *pacing) addPulse(pulse *pb.Pulse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = int(min(pulse.Ready, 1<<16))
	for _, s := range pulse.Steps {
		step := control.Step{Number: s.Number, Seconds: s.Step, Wait: s.Wait, Idle: math.NaN()}
		if s.Idle != nil {
			step.Idle = *s.Idle
		}
		p.pace.Add(step)
		p.window.AddStep(step)
	}
}

// addArrival takes how long a batch took to come, queued seconds of it in a node's queue.
func (p *pacing) addArrival(took time.Duration, queued float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window.AddArrival(took.Seconds() - queued)
}
