// Package scaler says how many nodes there should be, to KEDA and to whoever asks: it watches the nodes there are,
// which tell how many like them each job wants, and hears trainers that wait while there is none. What it knows it has
// from the last few seconds, so it may be restarted at any time, and run more than once. It starts and ends no nodes
// itself.
//
// Goroutines: Run has one that lists nodes and updates the number, and one per node that watches it; Run waits for all.
package scaler

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/proto/externalscaler"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

const (
	period         = 15 * time.Second // for which a number stands that has changed; it is computed
	earlyAfter     = 5 * time.Second  // again after that while it does not, or where all that were asked for are there and more are needed
	listEvery      = 5 * time.Second  // for nodes that come and go; or
	awaitEvery     = time.Second      // while some that were asked for have not come
	watchEvery     = 2 * time.Second
	answerWithin   = 15 * time.Second // else a node is silent
	silentFor      = 10 * time.Minute // it counts as a node that long
	waitCallMemory = 6 * time.Second  // a trainer that waits says so every 2 s
	startsWithin   = 5 * time.Minute  // nodes that were asked for count as starting that long
)

// Options of a Scaler.
type Options struct {
	// Nodes lists the addresses of the nodes that there are now.
	Nodes func(context.Context) ([]string, error)
	// Dial makes a connection to a node.
	Dial func(addr string) (*grpc.ClientConn, error)
	// Version is told to Prometheus.
	Version string
	// Log is told of nodes that come and go, and of numbers that change. Nil: nobody is.
	Log *slog.Logger
}

// Scaler is what its package says. Its methods may be called from many goroutines at once.
type Scaler struct {
	pb.UnimplementedFeedServer
	externalscaler.UnimplementedExternalScalerServer
	options   Options
	metrics   *metrics
	waitCalls chan struct{}
	heard     chan struct{} // a node answered for the first time

	mu           sync.Mutex
	began        time.Time // Run did
	listed       bool      // the nodes could be listed once
	nodes        map[string]*node
	lastWaitCall time.Time // when a trainer last said that it waits
	law          control.Scaler
	growth       map[job]control.Growth // by job that there was when the number was computed
	updated      time.Time
	wanted       int
	informed     bool          // the number has the word of a node, or there was none
	active       bool          // a trainer is there, or may be
	since        time.Time     // wanted is what it is
	change       chan struct{} // closed when it is computed anew
}

// node is one that was listed.
type node struct {
	stop   context.CancelFunc
	listed bool
	last   *pb.WatchResponse
	heard  time.Time
	// joined is when it answered first.
	joined time.Time
	// err is why it does not answer; nil while it does.
	err error
	// counted tells that it answered before the number was computed, and is in it.
	counted bool
}

// The states of a node: it never answered, or long ago; it answered of late; it answers.
const (
	gone = iota
	silent
	up
)

func (n *node) stateAt(now time.Time) int {
	switch age := now.Sub(n.heard); {
	case n.last == nil, age > silentFor:
		return gone
	case age > answerWithin:
		return silent
	}
	return up
}

// job names one of those that nodes tell of.
type job struct{ name, plan string }

// New returns a scaler that does nothing until Run.
func New(o Options) *Scaler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Scaler{
		options: o, waitCalls: make(chan struct{}, 1), heard: make(chan struct{}, 1), nodes: map[string]*node{}, change: make(chan struct{}),
	}
	s.metrics = newMetrics(s, o.Version)
	return s
}

// Register offers the scaler to KEDA, and to trainers that wait, at a gRPC server.
func (s *Scaler) Register(r grpc.ServiceRegistrar) {
	pb.RegisterFeedServer(r, s)
	externalscaler.RegisterExternalScalerServer(r, s)
}

// Open implements the service Feed: it is how a trainer says that it waits for a node. There is nothing to open here, so
// it is told by REASON_SCALER that it was heard.
func (s *Scaler) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	s.metrics.waitCalls.Inc()
	s.mu.Lock()
	s.lastWaitCall = time.Now()
	s.updateActive(s.lastWaitCall)
	s.mu.Unlock()
	select {
	case s.waitCalls <- struct{}{}:
	default:
	}
	return nil, heardStatus().Err()
}

// heardStatus is how a trainer knows that it was heard.
func heardStatus() *status.Status {
	s := status.New(codes.Unavailable, "this is a scaler, which makes no batches: it has been told that a node is waited for")
	with, err := s.WithDetails(&errdetails.ErrorInfo{Domain: "feedwater", Reason: pb.Reason_REASON_SCALER.String()})
	if err != nil {
		return s
	}
	return with
}

// Run watches nodes and updates the number until ctx ends.
func (s *Scaler) Run(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	look := time.NewTimer(listEvery)
	defer look.Stop()
	s.mu.Lock()
	s.began = time.Now()
	s.mu.Unlock()
	for ctx.Err() == nil {
		s.listNodes(ctx, &watchers)
		s.updateWanted(time.Now(), false)
		look.Reset(s.nextList(time.Now()))
		select {
		case <-look.C:
		case <-s.heard:
		case <-s.waitCalls:
			s.updateWanted(time.Now(), true)
		case <-ctx.Done():
		}
	}
}

// nextList is for how long the list of nodes is good.
func (s *Scaler) nextList(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if up := s.countNodes(now).up; up < s.wanted && now.Sub(s.since) < startsWithin {
		return awaitEvery
	}
	return listEvery
}

// listNodes begins to watch nodes that are new, and stops with those that are listed no more. Where none is listed, those
// that answer stay until their calls end: a certificate of all has ended, say, or the API server hears of no machine, and
// trainers go on with the nodes that they have.
func (s *Scaler) listNodes(ctx context.Context, watchers *sync.WaitGroup) {
	addrs, err := s.options.Nodes(ctx)
	if err != nil {
		s.metrics.unlisted.Inc()
		s.options.Log.Warn("the nodes cannot be listed", "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = true
	listed := map[string]bool{}
	for _, addr := range addrs {
		listed[addr] = true
		if s.nodes[addr] != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		n := &node{stop: stop, listed: true}
		s.nodes[addr] = n
		watchers.Go(func() {
			defer stop()
			s.watchNode(ctx, addr, n)
		})
	}
	now := time.Now()
	for addr, n := range s.nodes {
		n.listed = listed[addr]
		if !n.listed && (len(addrs) > 0 || n.stateAt(now) != up) {
			s.forgetNode(addr, n)
		}
	}
}

// forgetNode stops to watch a node. mu is held.
func (s *Scaler) forgetNode(addr string, n *node) {
	n.stop()
	if s.nodes[addr] == n {
		delete(s.nodes, addr)
	}
}

// forgetUnlisted forgets a node whose call has ended, if it is listed no more.
func (s *Scaler) forgetUnlisted(addr string, n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !n.listed {
		s.forgetNode(addr, n)
	}
}

// watchNode keeps a node's latest state until ctx ends.
func (s *Scaler) watchNode(ctx context.Context, addr string, n *node) {
	for ctx.Err() == nil {
		if err := s.followNode(ctx, addr, n); ctx.Err() == nil && !errors.Is(err, io.EOF) { // nodes that drain end the call
			s.recordFailure(addr, n, err)
		}
		s.forgetUnlisted(addr, n)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// followNode hears a node until its call ends. Each call has a connection of its own: one that died unnoticed does not
// live on.
func (s *Scaler) followNode(ctx context.Context, addr string, n *node) error {
	conn, err := s.options.Dial(addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return watch.Follow(ctx, conn, watchEvery, func(r *pb.WatchResponse) { s.recordState(n, r) })
}

// recordFailure takes why a node does not answer, and says so unless that is what was said last.
func (s *Scaler) recordFailure(addr string, n *node, err error) {
	s.metrics.unwatched.Inc()
	s.mu.Lock()
	known := n.err != nil && n.err.Error() == err.Error()
	n.err = err
	s.mu.Unlock()
	if !known {
		s.options.Log.Warn("a node cannot be watched", "node", addr, "err", err)
	}
}

// recordState takes a node's state.
func (s *Scaler) recordState(n *node, r *pb.WatchResponse) {
	s.mu.Lock()
	first := n.last == nil
	n.last, n.heard, n.err = r, time.Now(), nil
	if first {
		n.joined = n.heard
		if n.joined.Sub(s.began) < answerWithin {
			n.joined = s.began // it may have been there long before
		}
	}
	s.updateActive(n.heard)
	s.mu.Unlock()
	if !first {
		return
	}
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// isReady reports whether enough is known for a first number: all nodes that there are have answered, or had the time
// to. mu is held.
func (s *Scaler) isReady(now time.Time) bool {
	for _, n := range s.nodes {
		if n.last == nil && now.Sub(s.began) < answerWithin {
			return false
		}
	}
	return s.listed
}

// updateActive tells whether a trainer is there, if that has changed since somebody could know. mu is held.
func (s *Scaler) updateActive(now time.Time) {
	if active := s.hasTrainer(now); !s.updated.IsZero() && active != s.active {
		s.active = active
		s.tellChange()
	}
}

// hasTrainer reports whether one waits or trains. What trains on a node that is silent for now is not known. mu is held.
func (s *Scaler) hasTrainer(now time.Time) bool {
	if s.isWaitedFor(now) {
		return true
	}
	for _, n := range s.nodes {
		if state := n.stateAt(now); state == silent || state == up && len(n.last.Jobs) > 0 {
			return true
		}
	}
	return false
}

// isWaitedFor reports whether a trainer says that it waits for a node. mu is held.
func (s *Scaler) isWaitedFor(now time.Time) bool {
	return !s.lastWaitCall.IsZero() && now.Sub(s.lastWaitCall) < waitCallMemory
}

// tellChange wakes whoever waits for something else than was told. mu is held.
func (s *Scaler) tellChange() {
	close(s.change)
	s.change = make(chan struct{})
}

// updateWanted ends a period, if it is over or somebody asks for the first node.
func (s *Scaler) updateWanted(now time.Time, waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begins := s.updated.IsZero()
	if begins && !s.isReady(now) {
		return
	}
	s.updateActive(now)
	first := waited && s.wanted == 0
	if !begins && !first && !s.isDue(now) {
		return
	}
	seconds := period.Seconds()
	if !begins {
		seconds = now.Sub(s.updated).Seconds()
	}
	p := s.surveyNodes(now)
	s.growth = p.growth
	for _, n := range s.nodes {
		n.counted = n.stateAt(now) == up
	}
	s.updated, s.active = now, s.hasTrainer(now)
	defer s.tellChange()
	existing := s.existingNodes(now, p)
	if begins { // with what this one's predecessor, or its twin, may have asked for: nodes that are slow to answer are there too
		there := max(existing, len(s.nodes))
		s.law.LimitNodes(0, float64(there), false, false, there, there)
	}
	s.informed = s.informed || s.hasAnswers() || len(s.nodes) == 0
	wanted := s.law.LimitNodes(seconds, p.need+float64(p.silent), p.active, p.blind, existing, p.up+p.silent)
	if wanted == s.wanted {
		return
	}
	s.options.Log.Info("nodes wanted", "nodes", wanted, "before", s.wanted, "up", p.up, "silent", p.silent, "needed", p.need, "more", p.blind)
	s.wanted, s.since = wanted, now
}

// isDue reports whether the number may be computed anew. mu is held.
func (s *Scaler) isDue(now time.Time) bool {
	switch age := now.Sub(s.updated); {
	case age >= period:
		return true
	case age < earlyAfter:
		return false
	}
	return now.Sub(s.since) >= period || s.isEarly(now)
}

// isEarly reports whether a number that has changed may change again: all that were asked for are there, each of them has
// seen enough of its jobs' steps, and more nodes are needed. mu is held.
func (s *Scaler) isEarly(now time.Time) bool {
	p := s.surveyNodes(now)
	return p.known && p.silent == 0 && p.up >= s.wanted && p.need > float64(s.wanted)
}

// existingNodes is how many nodes there are or are starting. What was asked for and did not come within a while is not
// counted.
func (s *Scaler) existingNodes(now time.Time, p survey) int {
	if now.Sub(s.since) < startsWithin {
		return max(s.wanted, p.up+p.silent)
	}
	return p.up + p.silent
}

// survey is what all nodes together tell.
type survey struct {
	up, silent    int
	need          float64
	active, blind bool
	// known tells that it is known of each job how many nodes it takes.
	known bool
	// growth is what the nodes that came last have brought each job.
	growth map[job]control.Growth
}

// surveyNodes asks the nodes that answer of each job. mu is held.
func (s *Scaler) surveyNodes(now time.Time) survey {
	p := survey{active: s.isWaitedFor(now), known: true}
	jobs := map[job]*jobEstimate{}
	for addr, n := range s.nodes {
		switch n.stateAt(now) {
		case gone:
			continue
		case silent:
			p.silent++
			continue
		}
		p.up++
		for _, j := range n.last.Jobs {
			key := job{j.Job, j.Plan}
			if jobs[key] == nil {
				jobs[key] = &jobEstimate{}
			}
			jobs[key].addWord(addr, n.joined, j)
		}
	}
	p.growth = map[job]control.Growth{}
	work, bound := 0.0, false
	for key, c := range jobs {
		p.active, p.known = true, p.known && c.isKnown()
		growth := s.growth[key]
		nodes, blind := c.Bound(&growth, now.Sub(s.updated).Seconds())
		p.growth[key] = growth
		p.need += nodes
		work += c.Work()
		blind = blind && !c.newestSees
		bound = bound || blind && nodes > 0
		p.blind = p.blind || blind && nodes == 0
	}
	p.blind = p.blind || bound && !control.HaveSpareTime(work, p.up)
	return p
}

// jobEstimate is what nodes say of one job.
type jobEstimate struct {
	control.NodeEstimate
	newest     time.Time // when the newest of them joined that says how many nodes it takes
	newestSees bool      // it says so of what the job shows, without a bound
	unsaid     bool      // some do not say how many
	exact      bool      // some say so without a bound
}

// isKnown reports whether more words change nothing: all that see the job say how many nodes it takes, or one knows. A job that
// waits shows others than those that were there before that it waits no more.
func (c *jobEstimate) isKnown() bool { return !c.unsaid || c.exact }

// addWord takes what the node at an address says, which joined then. Of steps from before it came it knows nothing: where it sees no
// waiting, others do because of what was.
func (c *jobEstimate) addWord(addr string, joined time.Time, j *pb.JobStatus) {
	c.Add(addr, int(j.GetNodesWanted()), j.GetSecondsPerSample(), j.UpperBound)
	c.AddSupply(j.GetSupply())
	c.unsaid = c.unsaid || j.NodesWanted == nil
	c.exact = c.exact || j.NodesWanted != nil && !j.UpperBound
	if j.NodesWanted == nil || joined.Before(c.newest) {
		return
	}
	c.newestSees = !j.UpperBound && (c.newestSees || joined.After(c.newest))
	c.newest = joined
}
