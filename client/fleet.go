// Package client is a trainer's fleet of nodes. A Fleet holds streams to the nodes of one job, sends each want to the
// node that will have it soonest, and sends it elsewhere whenever that node dies, falls silent, is busy or delivers damage, so that
// a want has a batch as its answer as long as any node can make it. It makes no pixels and knows no slots, sockets or processes.
//
// Goroutines: one per Fleet owns all its state; one per node opens and re-opens it; each stream has one that sends and one that
// receives. Fleet.Close waits for all of them.
package client

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Options of a Fleet.
type Options struct {
	// Plan says what to do to each sample: JSON, docs/plan.md.
	Plan string
	// Job is a name for logs and metrics.
	Job string
	// Nodes: host:port or unix:path for one; dns:name:port, dns+srv:name, file:path, k8s:namespace/service:port for all that it stands
	// for, now and later. docs/nodes.md.
	Nodes []string
	// Sources tell of further nodes.
	Sources []membership.Source
	// Local, if set, is one more node: the pipeline of this process.
	Local node.Node
	// Rank of this trainer in its job. It spreads the trainers of a job over the nodes of a large fleet.
	Rank int
	// Numerics and Fingerprint, if set, are those that the job began with: nodes of others are left out. Without these and
	// Revisions the job begins now: Open needs nodes of the same data, and the numerics and revisions of most of them are the job's.
	Numerics, Fingerprint string
	// Revisions, if set, are those that the job began with: nodes that have others of what the plan uses are left out, and those that have others of
	// a codec are asked for nothing that takes it.
	Revisions *pb.Revisions
	// Build of this program, for people.
	Build string
	// Trainer is what this side does to batches. Nil: what this build does.
	Trainer *pb.Trainer
	// StartTimeout is how long to wait for the first batch, or for the first node, before giving up. 0: 900 s; negative: for ever.
	StartTimeout time.Duration
	// Timeout is how long to wait when no further batch comes from any node. 0: 120 s; negative: for ever.
	Timeout time.Duration
	// Dialing says how to reach the nodes.
	Dialing node.DialOptions
	// Scaler, if set, is asked for nodes while there is none: a trainer that waits opens its plan there, again and again.
	Scaler node.Node
	// Tell, if set, is told of the training loop as the nodes are: for what scales them. It is called from any goroutine and must not block.
	Tell func(*pb.Pulse)
	// Dial makes a node of the address of one; nil: Dial with Dialing.
	Dial func(addr string) (node.Node, error)
	// Seed decides how much the waits between attempts to reach a node vary, so that a run can be repeated. 0: chance does.
	Seed uint64
	// Tracer makes spans of batches and of attempts at them; nil: there are none. docs/tracing.md.
	Tracer trace.Tracer
	// Log is told of nodes that come, go and misbehave. Nil: nobody is.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.StartTimeout = orDefault(o.StartTimeout, 900*time.Second)
	o.Timeout = orDefault(o.Timeout, 120*time.Second)
	if o.Trainer == nil {
		o.Trainer = trainerOf(o.Build)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return 1 << 62
	}
	return d
}

// Fleet is the nodes of one job. Its parts share the job, and belong to its goroutine where they do not say otherwise.
type Fleet struct {
	job      *job
	roster   *roster
	queue    *queue
	inFlight *inFlight
	opening  *opening

	first    []*member // of New, until Open
	start    sync.Once
	stopped  chan struct{}
	scaler   scalerCalls
	statuses atomic.Pointer[[]NodeStatus]
	efforts  atomic.Pointer[Effort]
	reminder time.Time // when to say that there is no node
	beaten   time.Time // when the goroutine ran last
}

// New returns a fleet that does nothing until Open. Errors are *AddressError, but for a fleet without nodes.
func New(o Options) (*Fleet, error) {
	f := &Fleet{job: newJob(o.withDefaults()), stopped: make(chan struct{})}
	f.scaler.job = f.job
	f.roster = &roster{job: f.job, events: f}
	f.queue = newQueue()
	f.inFlight = &inFlight{job: f.job, roster: f.roster, queue: f.queue, chooser: &chooser{job: f.job, roster: f.roster, queue: f.queue, cost: pick.UnknownCost}}
	f.opening = &opening{job: f.job, roster: f.roster, ready: make(chan struct{})}
	addrs, sources, err := membership.Parse(o.Nodes)
	if err != nil {
		return nil, node.ToAddressError(err)
	}
	for _, addr := range addrs {
		n, err := f.job.options.dial(addr, "")
		if err != nil {
			return nil, err
		}
		f.first = append(f.first, f.roster.newMember(n, false))
	}
	for _, s := range append(sources, o.Sources...) {
		f.roster.sources = append(f.roster.sources, &source{Source: s})
	}
	if o.Local != nil {
		f.first = append(f.first, f.roster.newMember(o.Local, false))
	}
	if len(f.first) == 0 && len(f.roster.sources) == 0 {
		return nil, fmt.Errorf("a fleet without nodes: name some, or give a local one")
	}
	return f, nil
}

// Open opens the plan on all nodes and returns what the job pins, when all have answered or failed, at most a second after the first
// answer; nodes that take longer join when they answer. It fails when none can take part: then the error is or wraps *PlanError,
// *DataError, *NumericsError or *RevisionError; at the start of a job with *DataError when the data of nodes differs; or with *StallError after
// StartTimeout. A fleet that failed to open has to be closed too.
func (f *Fleet) Open(ctx context.Context) (*pb.OpenResponse, error) {
	f.start.Do(func() {
		f.inFlight.progress = time.Now()
		go f.run() // Close waits for stopped
	})
	select {
	case <-f.opening.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.job.ctx.Done():
		return nil, ErrClosed
	}
	if f.opening.openErr != nil {
		return nil, f.opening.openErr
	}
	return f.job.info.Load(), nil
}

// Close ends all streams, answers all wants with ErrClosed and returns when nothing of the fleet runs any more.
func (f *Fleet) Close() {
	f.job.cancel()
	f.start.Do(func() { // never opened
		f.leave()
		close(f.stopped)
	})
	<-f.stopped
}

// Want asks for a batch. It does not block.
func (f *Fleet) Want(w *Want) {
	if !f.job.inbox.post(func() { f.inFlight.submit(w) }) {
		w.Done(Result{Err: ErrClosed})
	}
}

// Cancel gives a want up: its Done comes soon, unless it came before.
func (f *Fleet) Cancel(w *Want) {
	f.job.inbox.post(func() { f.inFlight.decide(w, node.ErrCancelled) })
}

// run owns the fleet's state.
func (f *Fleet) run() {
	defer close(f.stopped)
	for _, m := range f.first {
		f.roster.enter(m)
	}
	f.follow()
	f.roster.connect(time.Now())
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for f.job.ctx.Err() == nil {
		select {
		case <-f.job.inbox.wake:
			f.beat(time.Now())
			f.handle(false)
		case <-tick.C:
			f.beat(time.Now())
			f.handle(false)
			f.watch(time.Now())
		case <-f.job.ctx.Done():
		}
		f.inFlight.assign(time.Now())
	}
	f.job.keepers.Wait() // closes the streams, so that every attempt has its answer
	f.scaler.close()
	f.leave()
}

// handle does what has been posted; after the last time nothing more may be.
func (f *Fleet) handle(last bool) {
	for _, event := range f.job.inbox.take(last) {
		event()
	}
}

// leave handles what is still in the inbox and answers the wants that are left. No node holds any of them.
func (f *Fleet) leave() {
	f.handle(true)
	for w := range f.queue.all {
		f.inFlight.finish(w, Result{Err: ErrClosed})
	}
}

// newMember is a node that may enter. hint says that a source told of it, which may err.
func (r *roster) newMember(n node.Node, hint bool) *member {
	return &member{roster: r, node: n, hint: hint}
}

// enter takes a node in, to which the fleet may connect from now on.
func (r *roster) enter(m *member) {
	m.common = pick.Score(r.job.options.Job, m.node.Addr())
	m.score = pick.Score(r.job.options.Job+" "+strconv.Itoa(r.job.options.Rank), m.node.Addr())
	r.members = append(r.members, m)
	r.connected = time.Time{}
}

// SetNodes replaces the nodes by address; the local node stays, and so do those that a source told of. Wants at a node that goes are sent
// elsewhere. An error, about an address, changes nothing.
func (f *Fleet) SetNodes(addrs []string) error {
	nodes := make(map[string]node.Node, len(addrs))
	for _, addr := range addrs {
		n, err := f.job.options.dial(addr, "")
		if err != nil {
			return err
		}
		nodes[addr] = n
	}
	f.job.inbox.post(func() { f.roster.replace(nodes) })
	return nil
}

func (r *roster) replace(nodes map[string]node.Node) {
	if r.job.ctx.Err() != nil {
		return
	}
	var stay []*member
	for _, m := range r.members {
		if _, ok := nodes[m.node.Addr()]; ok || m.hint || m.node == r.job.options.Local {
			stay = append(stay, m)
			delete(nodes, m.node.Addr())
			continue
		}
		r.job.log.Info("node removed", "node", m.node.Addr())
		m.end()
	}
	r.members = stay
	r.relist()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		r.enter(r.newMember(nodes[addr], false))
	}
}
