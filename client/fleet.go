// Package client is a trainer's fleet of nodes. A Fleet holds streams to the nodes of one job, sends each want to the
// node that will have it soonest, and sends it elsewhere whenever that node dies, falls silent, is busy or delivers
// damage, so that a want has a batch as its answer as long as any node can make it. It makes no pixels and knows no
// slots, sockets or processes.
//
// Goroutines: one per Fleet owns all its state; one per node opens and re-opens it; each stream has one that sends and
// one that receives. Fleet.Close waits for all of them.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/span"
)

// Fleet is the nodes of one job. Its parts share the job, and belong to its goroutine where they do not say otherwise.
type Fleet struct {
	job      *job
	roster   *roster
	queue    *queue
	inFlight *inFlight
	opener   *jobOpener

	initial  []*member // of New, until Open
	start    sync.Once
	stopped  chan struct{}
	scaler   scalerCalls
	statuses atomic.Pointer[[]NodeStatus]
	efforts  atomic.Pointer[Effort]
	reminder time.Time // when to say that there is no node
	lastRun  time.Time // when the goroutine ran last
}

// New returns a fleet that does nothing until Open. An error is an *AddressError, or says that Options name no node.
func New(o Options) (*Fleet, error) {
	f := &Fleet{job: newJob(o.withDefaults()), stopped: make(chan struct{})}
	f.scaler.job = f.job
	f.roster = &roster{job: f.job, events: f}
	f.queue = newQueue()
	f.inFlight = &inFlight{job: f.job, roster: f.roster, queue: f.queue, chooser: &chooser{job: f.job, roster: f.roster, queue: f.queue, cost: pick.UnknownCost}}
	f.opener = &jobOpener{job: f.job, roster: f.roster, ready: make(chan struct{})}
	addrs, sources, err := membership.Parse(o.Nodes)
	if err != nil {
		return nil, node.ToAddressError(err)
	}
	for _, addr := range addrs {
		n, err := f.job.options.dial(addr, "")
		if err != nil {
			return nil, err
		}
		f.initial = append(f.initial, f.roster.newMember(n, false))
	}
	for _, s := range append(sources, o.Sources...) {
		f.roster.sources = append(f.roster.sources, &source{Source: s})
	}
	if o.Local != nil {
		f.initial = append(f.initial, f.roster.newMember(o.Local, false))
	}
	if len(f.initial) == 0 && len(f.roster.sources) == 0 {
		return nil, fmt.Errorf("a fleet without nodes: name some, or give a local one")
	}
	return f, nil
}

// Open opens the plan on all nodes and returns what the job pins, when all have answered or failed, at most a second
// after the first answer; nodes that take longer join when they answer. It fails when none can take part: then the
// error is or wraps *PlanError, *DataError, *NumericsError or *RevisionError; at the start of a job with *DataError
// when the data of nodes differs; or with *StallError after StartTimeout. A fleet that failed to open has to be closed
// too.
func (f *Fleet) Open(ctx context.Context) (*pb.OpenResponse, error) {
	f.start.Do(func() {
		f.inFlight.lastProgress = time.Now()
		go f.runLoop() // Close waits for stopped
	})
	select {
	case <-f.opener.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.job.ctx.Done():
		return nil, ErrClosed
	}
	if f.opener.openErr != nil {
		return nil, f.opener.openErr
	}
	return f.job.info.Load(), nil
}

// Close ends all streams, answers all wants with ErrClosed and returns when nothing of the fleet runs any more.
func (f *Fleet) Close() {
	f.job.cancel()
	f.start.Do(func() { // never opened
		f.failRemaining()
		close(f.stopped)
	})
	<-f.stopped
}

// Want asks for a batch. It does not block.
func (f *Fleet) Want(w *Want) {
	if !f.job.inbox.post(func() { f.inFlight.addWant(w) }) {
		w.Done(Result{Err: ErrClosed})
	}
}

// Cancel gives a want up: its Done comes soon, unless it came before.
func (f *Fleet) Cancel(w *Want) {
	f.job.inbox.post(func() { f.inFlight.failWant(w, node.ErrCancelled) })
}

// runLoop owns the fleet's state.
func (f *Fleet) runLoop() {
	defer close(f.stopped)
	for _, m := range f.initial {
		f.roster.addMember(m)
	}
	f.followSources()
	f.roster.connectMembers(time.Now())
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for f.job.ctx.Err() == nil {
		select {
		case <-f.job.inbox.wake:
			f.checkSuspension(time.Now())
			f.job.inbox.handleEvents(false)
		case <-tick.C:
			f.checkSuspension(time.Now())
			f.job.inbox.handleEvents(false)
			f.handleTick(time.Now())
		case <-f.job.ctx.Done():
		}
		f.inFlight.assignWants(time.Now())
	}
	f.job.goroutines.Wait() // closes the streams, so that every attempt has its answer
	f.scaler.close()
	f.failRemaining()
}

// failRemaining handles what is still in the inbox and answers the wants that are left. No node holds any of them.
func (f *Fleet) failRemaining() {
	f.job.inbox.handleEvents(true)
	for w := range f.queue.all {
		f.inFlight.finishWant(w, Result{Err: ErrClosed})
	}
}

// SetNodes replaces the nodes by address; the local node stays, and so do those that a source told of. Wants at a node
// that goes are sent elsewhere. An error, about an address, changes nothing.
func (f *Fleet) SetNodes(addrs []string) error {
	nodes := make(map[string]node.Node, len(addrs))
	for _, addr := range addrs {
		n, err := f.job.options.dial(addr, "")
		if err != nil {
			return err
		}
		nodes[addr] = n
	}
	f.job.inbox.post(func() { f.roster.replaceNodes(nodes) })
	return nil
}

// Effort tells what was done, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Effort() Effort {
	if e := f.efforts.Load(); e != nil {
		return *e
	}
	return Effort{}
}

// Due is when the loop will need the batch that has ahead others before it, from now. It never blocks.
func (f *Fleet) Due(ahead int) time.Duration {
	f.job.pacing.mu.Lock()
	defer f.job.pacing.mu.Unlock()
	return time.Duration(min(f.job.pacing.pace.DueIn(ahead), 3600) * float64(time.Second))
}

// DueAfter is when a new want is due, where the loop needs ahead batches before its batch, and the last of these is due
// at last. It is never earlier than last: estimates of the pace change, and the order of batches does not.
func (f *Fleet) DueAfter(last time.Time, ahead int) time.Time {
	due := time.Now().Add(f.Due(ahead))
	if ahead > 0 && due.Before(last) {
		return last
	}
	return due
}

// Window is how many batches, of batch samples each, to have wanted or ready: at the loop's pace they outlast the
// slowest recent batch and a node that falls silent. While no batch is ready before the loop needs it, more wants than
// keep the nodes busy would only take memory. So the window is bounded by how many batches are ready. It never blocks.
func (f *Fleet) Window(batch int) int {
	busy := f.busyBatches(batch)
	silence := float64(silenceSeconds)
	if len(f.job.options.Nodes) == 0 { // this process does not fall silent
		silence = 0
	}
	f.job.pacing.mu.Lock()
	defer f.job.pacing.mu.Unlock()
	n := f.job.pacing.window.Batches(f.job.pacing.pace.Seconds(), silence)
	if n == 0 {
		return busy
	}
	return min(n, busy+2*(f.job.pacing.ready+SpareBatches))
}

// silenceSeconds is for how long batches must last when a node falls silent: until that is noticed and the batch came
// from elsewhere.
const silenceSeconds = 2

// SpareBatches is how many batches are wanted beside those that keep nodes busy.
const SpareBatches = 2

// Pulse tells all nodes that are connected how the training loop fares. It does not block, and changes no batch. The
// pulse is the fleet's from then on.
func (f *Fleet) Pulse(p *pb.Pulse) {
	f.job.pacing.addPulse(p)
	if f.job.options.Tell != nil {
		f.job.options.Tell(p)
	}
	f.job.inbox.post(func() {
		for _, m := range f.roster.live {
			m.session.stream.Pulse(p)
		}
	})
}

// handleJoin says that a stream to a node is there.
func (f *Fleet) handleJoin(s *session) {
	m := s.member
	m.session, m.tried, m.leftOut, m.err, m.changed = s, true, false, nil, ""
	m.relist, m.listing = relisting{}, s.listing
	m.hadStream, s.lastAnswer = true, time.Now()
	f.inFlight.clearRefusals(m)
	f.roster.refreshLive()
	if !m.chosen { // it was let go meanwhile
		m.releaseStream()
		return
	}
	f.job.log.Info("node joined", "node", m.node.Addr(), "workers", s.workers)
	f.publishStatus(s.lastAnswer)
	f.opener.finishOpen()
}

// handleLoss says that a node could not be opened, or that its stream ended. All its attempts have been answered.
func (f *Fleet) handleLoss(m *member, err error) {
	was := m.stateAt(time.Time{})
	m.session, m.proposal, m.scans, m.tried = nil, nil, nil, true
	m.endRelist()
	f.roster.refreshLive()
	if err != nil {
		m.err = err
	}
	m.leftOut = isRefusal(err)
	if data := (*node.DataError)(nil); m.changed != "" && errors.As(err, &data) {
		data.Message = m.changed + ": " + data.Message + f.roster.adviceOnChange(m.changed) // the cause goes first
	}
	if f.job.ctx.Err() != nil {
		return
	}
	quit := errors.Is(err, context.Canceled) && (m.changed != "" || !m.chosen) // by us, and said why, or not needed
	now, failed := m.stateAt(time.Time{}), f.opener.hasFailed()
	f.opener.checkOpen()
	told := f.opener.hasFailed() && !failed // by the error of Open
	if now != was && !quit && !told {
		f.job.log.Warn("node "+string(now), "node", m.node.Addr(), "err", err)
	}
}

// handleNotice takes what a node told of itself at a time.
func (f *Fleet) handleNotice(s *session, n *pb.Notice, now time.Time) {
	s.queued, s.lastHeard = plausibleAmount(n.Queued), n.Heard
	s.trouble = n.Trouble
	s.member.speed.RecordReport(n.AheadSeconds, n.SampleSeconds, f.job.clock(now))
	for _, a := range s.attempts {
		if slices.Contains(n.Begun, a.request.ID) {
			a.markBegun(now)
		}
	}
	if n.Draining && !s.draining {
		s.draining = true
		f.job.log.Info("node draining", "node", s.member.node.Addr())
	}
}

// judgeJoin has a node's answer judged.
func (f *Fleet) judgeJoin(m *member, r *pb.OpenResponse, verdict chan<- joinDecision) {
	f.opener.judgeJoin(m, r, verdict)
}

// followSources begins to listen to the sources.
func (f *Fleet) followSources() {
	for _, s := range f.roster.sources {
		f.job.goroutines.Go(func() {
			s.Watch(f.job.ctx, func(a membership.Answer) { f.job.inbox.post(func() { f.handleSource(s, a) }) })
		})
	}
}

// handleSource takes a source's answer in.
func (f *Fleet) handleSource(s *source, a membership.Answer) {
	if f.job.ctx.Err() != nil {
		return
	}
	s.answered, s.err = true, a.Err
	if a.Err != nil {
		f.job.log.Warn("nodes cannot all be listed; those that answer stay", "source", s, "listed", len(a.Nodes), "err", a.Err)
	} else {
		f.job.log.Info("nodes listed", "source", s, "nodes", len(a.Nodes))
	}
	if len(a.Nodes) > 0 {
		s.nodes = slices.Sorted(slices.Values(a.Nodes))
		if err := f.roster.addListed(s, a.ServerName); err != nil {
			f.opener.failOpen(err)
		}
	}
	f.opener.checkOpen()
}

// Span begins the span of a batch that is about to be wanted. parent is what it is part of, or not valid. It is nil
// where nobody traces, and where the sampler leaves the batch out: then nothing of it is traced anywhere.
func (f *Fleet) Span(name *pb.Name, rank int, parent trace.SpanContext) *Span {
	if f.job.options.Tracer == nil {
		return nil
	}
	_, s := f.job.options.Tracer.Start(span.Below(parent), span.Batch, trace.WithAttributes(
		span.Job.String(span.Text(f.job.options.Job)), span.Rank.Int(rank), span.Epoch.Int64(int64(name.Epoch)), span.Position.Int64(positionOf(name)), span.Samples.Int(node.CountSamples(name)),
	))
	if !s.SpanContext().IsSampled() {
		return nil
	}
	return &Span{span: s}
}

// Traced tells whether anybody traces the fleet's batches.
func (f *Fleet) Traced() bool { return f.job.options.Tracer != nil }

// Traces are the latest attempts, oldest first, as of at most 0.1 s ago. It never blocks.
func (f *Fleet) Traces() []Trace {
	if t := f.inFlight.traces.published.Load(); t != nil {
		return *t
	}
	return nil
}

// busyBatches is how many batches of that many samples keep the nodes that are up busy, with some to spare.
func (f *Fleet) busyBatches(batch int) int {
	n := SpareBatches
	for _, s := range f.Status() {
		if s.State == Ready || s.State == Busy || s.State == Doubted {
			n += pick.InFlight(s.Workers, batch)
		}
	}
	return max(n, SpareBatches+pick.InFlight(1, batch))
}
