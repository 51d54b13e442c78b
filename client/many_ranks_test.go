package client_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// How many there are, for trying the laws with more than the test has time for.
var (
	crowdNodes = flag.Int("nodes", 20, "nodes of TestCrowd that would feed its ranks")
	crowdRanks = flag.Int("ranks", 8, "ranks of TestCrowd, a quarter in each job")
)

// crowdSize is ranks, a quarter in each job, and how many nodes feed them.
type crowdSize struct{ ranks, nodes int }

// The control laws, many nodes and many trainers at once: the trainers are the real client, nodes are queues of package
// share and books of package pulse without a wire between, so that a machine can hold so many. Time is virtual.

const (
	crowdJobs  = 4
	crowdBatch = 8
	crowdStep  = 500 * time.Millisecond
	crowdStart = 20 * time.Second // until a node that was asked for is there
	crowdLasts = 480 * time.Second
	crowdLate  = 420 * time.Second // from here on nobody waits any more
)

// crowd is nodes, by address, and how many a scaler wants.
type crowd struct {
	t *testing.T
	crowdSize
	sample time.Duration // on a node, which has one core

	mu    sync.Mutex
	nodes map[string]*lawful
	addrs []string
	names int
}

// lawful is a node that keeps the laws and makes nothing.
type lawful struct {
	crowd *crowd
	addr  string
	book  pulse.Registry

	mu       sync.Mutex
	queue    share.Queue[*ordered]
	accounts map[string]*share.Account
	streams  map[*lawfulStream]struct{}
	working  bool
	slower   float64       // times the crowd's sample; 0: as that
	others   time.Duration // of work for somebody else, which comes first
	made     int           // samples
	most     int           // streams at once
	pulses   int
	largest  int // pulse, in bytes
}

// ordered is a want at a lawful node.
type ordered struct {
	stream  *lawfulStream
	attempt *node.Attempt
	id      uint64
	entry   *share.Entry[*ordered]
	sent    time.Time
	begun   time.Time
	left    int
	dropped bool
}

func (c *crowd) now() float64 { return time.Since(crowdEpoch).Seconds() }

// crowdEpoch is when virtual time begins.
var crowdEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// dial is client.Options.Dial.
func (c *crowd) dial(addr string) (node.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lawfulNode{c.nodes[addr]}, nil
}

// add starts so many nodes.
func (c *crowd) add(count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range count {
		addr := fmt.Sprintf("10.1.%d.%d:7070", c.names/250, c.names%250)
		c.nodes[addr] = &lawful{crowd: c, addr: addr, accounts: map[string]*share.Account{}, streams: map[*lawfulStream]struct{}{}}
		c.addrs = append(c.addrs, addr)
		c.names++
	}
}

func (c *crowd) all() []*lawful {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*lawful
	for _, addr := range c.addrs {
		all = append(all, c.nodes[addr])
	}
	return all
}

// wanted is what `feedwater scaler` reads off the nodes: of each job the largest number that one tells, and all jobs
// together. blind tells that there is a job of which nobody knows how many it takes, and that waits.
func (c *crowd) wanted() (sum float64, blind bool) {
	largest, starved := map[string]int{}, map[string]bool{}
	for _, n := range c.all() {
		for _, j := range n.book.Jobs(time.Now()) {
			r := j.Reading()
			r.Cost = c.sample.Seconds()
			largest[j.Name] = max(largest[j.Name], r.NodesNeeded(1))
			starved[j.Name] = starved[j.Name] || r.Starved
		}
	}
	for name, n := range largest {
		sum += float64(n)
		blind = blind || n == 0 && starved[name]
	}
	return sum, blind
}

// lawfulNode is a node as a trainer's fleet has it.
type lawfulNode struct{ *lawful }

func (n lawfulNode) Addr() string { return n.addr }
func (n lawfulNode) Close() error { return nil }

func (n lawfulNode) Replay(context.Context, *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	return nil, context.Canceled
}

func (n lawfulNode) Open(context.Context, *pb.OpenRequest) (*pb.OpenResponse, error) {
	return &pb.OpenResponse{
		Plan: plan, PlanHash: "hash", Numerics: "numerics", Fingerprint: "fingerprint", Samples: 1 << 20, Workers: 1,
		Fields: []*pb.Field{{Name: "label", Dtype: "int64"}}, Protocol: pb.Protocol,
	}, nil
}

func (n lawfulNode) Fetch(_ context.Context, start *pb.Start, notice func(*pb.Notice)) (node.Stream, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accounts[start.Job] == nil {
		n.accounts[start.Job] = share.NewAccount(1)
	}
	s := &lawfulStream{
		node: n.lawful, notice: notice, account: n.accounts[start.Job], line: n.book.OpenSession(start.Job, "hash", time.Now()),
		heard: time.Now(), wants: map[*node.Attempt]*ordered{}, ended: make(chan struct{}),
	}
	n.streams[s] = struct{}{}
	n.most = max(n.most, len(n.streams))
	return s, nil
}

// work makes samples, one after the other, until there are none; it tells trainers how the node is each 0.2 s
// meanwhile.
func (n *lawful) work() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		n.mu.Lock()
		if n.others > 0 {
			const turn = 100 * time.Millisecond
			n.others -= turn
			n.mu.Unlock()
			time.Sleep(turn)
			n.tell()
			continue
		}
		turn, ok := n.queue.Take(n.crowd.now())
		if !ok {
			n.working = false
			n.mu.Unlock()
			return
		}
		o := turn.Entry.Value
		if o.begun.IsZero() {
			o.begun = time.Now()
		}
		dropped, takes := o.dropped, n.takes()
		n.mu.Unlock()
		if !dropped {
			time.Sleep(takes)
		}
		n.finish(turn)
		select {
		case <-tick.C:
			n.tell()
		default:
		}
	}
}

// takes is how long a sample takes. mu is held.
func (n *lawful) takes() time.Duration {
	if n.slower == 0 {
		return n.crowd.sample
	}
	return time.Duration(n.slower * float64(n.crowd.sample))
}

// set changes how fast the node is, and what it does for others.
func (n *lawful) set(slower float64, others time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slower, n.others = slower, others
}

// has reports whether the node has a want at that position.
func (n *lawful) has(position uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.streams {
		for a := range s.wants {
			if a.Name.GetRange().GetPosition() == position {
				return true
			}
		}
	}
	return false
}

// finish takes what was made, and answers a want that is whole.
func (n *lawful) finish(turn share.Portion[*ordered]) {
	o := turn.Entry.Value
	n.mu.Lock()
	defer n.mu.Unlock()
	if !o.dropped {
		n.made += turn.Count
	}
	if o.left -= turn.Count; o.left > 0 || o.dropped {
		return
	}
	n.queue.RecordCost(o.entry, time.Since(o.begun).Seconds(), crowdBatch*n.takes().Seconds())
	delete(o.stream.wants, o.attempt)
	o.stream.tell()
	o.attempt.Done(node.Answer{Header: &pb.Header{QueuedSeconds: o.begun.Sub(o.sent).Seconds()}, Data: o.attempt.Dst})
}

// tell sends a notice to everybody who waits.
func (n *lawful) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.streams {
		if len(s.wants) > 0 {
			s.tell()
		}
	}
}

// lawfulStream is a trainer's stream to a lawful node. All of it is guarded by the node's mu.
type lawfulStream struct {
	node    *lawful
	notice  func(*pb.Notice)
	account *share.Account
	line    *pulse.Session
	heard   time.Time
	last    uint64
	wants   map[*node.Attempt]*ordered
	ended   chan struct{}
	closed  bool
}

// tell sends a notice. The node's mu is held.
func (s *lawfulStream) tell() {
	s.heard = time.Now()
	n := &pb.Notice{
		Wants: uint32(len(s.wants)), Queued: float64(s.node.queue.Samples()) * s.node.takes().Seconds(),
		AheadSeconds: s.node.queue.Ahead(s.account) + s.node.others.Seconds(), SampleSeconds: s.node.takes().Seconds(), Heard: s.last,
	}
	for _, o := range s.wants {
		if !o.begun.IsZero() {
			n.Begun = append(n.Begun, o.id)
		}
	}
	s.notice(n)
}

func (s *lawfulStream) Send(a *node.Attempt) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	s.last++
	a.ID = s.last
	o := &ordered{stream: s, attempt: a, id: s.last, sent: time.Now(), left: crowdBatch}
	s.wants[a] = o
	due := n.crowd.now()
	if !a.Due.IsZero() {
		due = a.Due.Sub(crowdEpoch).Seconds()
	}
	o.entry = n.queue.Push(o, s.account, a.Step, due, crowdBatch)
	if !n.working {
		n.working = true
		go n.work() // ends with the work, which ends with the trainers; the bubble waits for it
	}
}

func (s *lawfulStream) Cancel(a *node.Attempt) {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.cancel(a, node.ErrCancelled)
}

// cancel answers a want that will not be made. The node's mu is held.
func (s *lawfulStream) cancel(a *node.Attempt, why error) {
	if o := s.wants[a]; o != nil {
		delete(s.wants, a)
		o.dropped = true
		s.node.queue.Drop(o.entry)
		a.Done(node.Answer{Err: why})
	}
}

func (s *lawfulStream) Pulse(p *pb.Pulse) {
	s.line.Report(p, time.Now())
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	s.node.pulses++
	s.node.largest = max(s.node.largest, proto.Size(p))
}

func (s *lawfulStream) Heard() time.Time {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.heard
}

func (s *lawfulStream) Ended() <-chan struct{} { return s.ended }
func (s *lawfulStream) Err() error             { return nil }

func (s *lawfulStream) Close() {
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.line.End(time.Now())
	delete(s.node.streams, s)
	for a := range s.wants {
		s.cancel(a, client.ErrClosed)
	}
	close(s.ended)
}

// members are the trainers of all jobs. Those of one job have the same noise, 15 %, in their steps, and wait for each
// other at each.
func (c *crowd) members() []*trainer {
	var all []*trainer
	ranks := c.ranks / crowdJobs
	var meetings [crowdJobs]*meeting
	for i := range meetings {
		meetings[i] = newMeeting(ranks)
	}
	for i := range crowdJobs * ranks {
		job := i / ranks
		r := &trainer{
			host: crowdStep / 10, ahead: 3, noise: rand.New(rand.NewPCG(1, uint64(job))), phases: []phase{{crowdLasts, crowdStep + time.Duration(i)*997}},
			job: meetings[job],
		}
		r.begin(c.t, loader.Options{
			Options: client.Options{Plan: plan, Job: fmt.Sprint("job", job), Rank: i % ranks, Nodes: c.addrs, Dial: c.dial, Seed: uint64(i + 1)},
			Batch:   crowdBatch, Rank: i % ranks, Ranks: ranks,
		})
		if _, err := r.loader.Open(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// grow asks for nodes each 15 s as a scaler does, and has every trainer told of those that have come, until done. It
// returns what was wanted.
func (c *crowd) grow(trainers []*trainer, done <-chan struct{}) (wanted []int) {
	var law control.Scaler
	tick := time.NewTicker(period)
	defer tick.Stop()
	there, before := len(c.addrs), c.tally(trainers)
	law.LimitNodes(period.Seconds(), float64(there), true, false, there, there) // somebody wanted them
	for {
		select {
		case <-tick.C:
		case <-done:
			return wanted
		}
		need, blind := c.wanted()
		n := law.LimitNodes(period.Seconds(), need, true, blind, there, there)
		wanted = append(wanted, n)
		now := c.tally(trainers)
		c.t.Logf("%3.0f s: %d nodes there, %d wanted; stall of the period %.2f %%; %d moves of %d batches", c.now(), there, n,
			100*(now.stalled-before.stalled).Seconds()/float64(len(trainers))/period.Seconds(), now.moves-before.moves, now.batches-before.batches)
		before = now
		switch more := n - there; {
		case more > 0:
			time.AfterFunc(crowdStart, func() {
				c.add(more)
				c.list(trainers)
			})
		case more < 0:
			c.mu.Lock()
			c.addrs = c.addrs[:n]
			c.mu.Unlock()
			c.list(trainers)
		}
		there = n
	}
}

// list tells all trainers which nodes there are.
func (c *crowd) list(trainers []*trainer) {
	c.mu.Lock()
	addrs := slices.Clone(c.addrs)
	c.mu.Unlock()
	for _, r := range trainers {
		if err := r.loader.Fleet().SetNodes(addrs); err != nil {
			c.t.Error(err)
		}
	}
}

// tally is what was done so far: samples by node, GPU time lost, and wants that were moved and batches that came.
type tally struct {
	made           map[string]int
	stalled        time.Duration
	moves, batches uint64
}

func (c *crowd) tally(trainers []*trainer) tally {
	y := tally{made: map[string]int{}}
	for _, n := range c.all() {
		n.mu.Lock()
		y.made[n.addr] = n.made
		n.mu.Unlock()
	}
	for _, r := range trainers {
		r.mu.Lock()
		y.stalled += r.stalled
		r.mu.Unlock()
		e := r.loader.Fleet().Effort()
		y.moves, y.batches = y.moves+e.Moves, y.batches+e.Batches
	}
	return y
}

// run lets all trainers run to their end while the pool grows, and returns what was wanted, and what was done by
// crowdLate and at the end.
func (c *crowd) run(trainers []*trainer) (wanted []int, late, end tally) {
	done := make(chan struct{})
	var watch, run sync.WaitGroup
	watch.Go(func() { wanted = c.grow(trainers, done) })
	watch.Go(func() {
		time.Sleep(crowdLate)
		late = c.tally(trainers)
	})
	for _, r := range trainers {
		run.Go(func() { r.run(c.t) })
	}
	run.Wait()
	end = c.tally(trainers)
	close(done)
	watch.Wait()
	return wanted, late, end
}

// turns is how often numbers that rose fall, and the other way round. One node up or down is none: a need that is
// measured lies to either side of a whole number.
func turns(all []int) (n int) {
	rises, extreme := true, all[0]
	for _, v := range all {
		switch ahead := v > extreme; {
		case v == extreme:
		case ahead == rises:
			extreme = v
		case max(v, extreme)-min(v, extreme) > 1:
			rises, extreme = ahead, v
			n++
		}
	}
	return n
}

// deviation is how uneven counts are: their standard deviation over their mean.
func deviation(counts []int) (mean, uneven float64) {
	sum, squares := 0.0, 0.0
	for _, n := range counts {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	mean = sum / float64(len(counts))
	return mean, math.Sqrt(max(squares/float64(len(counts))-mean*mean, 0)) / mean
}

// From a third of the nodes that it takes, the pool grows to what feeds all trainers, at most to four times that as the
// law allows while nobody is fed, and settles there. Then work is even over the nodes, a node has no more streams than
// hashes give it and no more in its book than those, and pulses are small.
func TestCrowd(t *testing.T) {
	if loader.Checked {
		t.Skip("the race detector learns nothing from so many")
	}
	size := crowdSize{*crowdRanks, *crowdNodes}
	synctest.Test(t, func(t *testing.T) {
		need := float64(size.nodes)
		demand := float64(size.ranks) * crowdBatch / crowdStep.Seconds()
		c := &crowd{t: t, crowdSize: size, sample: time.Duration(need / demand * float64(time.Second)), nodes: map[string]*lawful{}}
		c.add(int(need / 3))
		trainers := c.members()
		wanted, late, end := c.run(trainers)
		stall := (end.stalled - late.stalled).Seconds() / float64(len(trainers)) / (crowdLasts - crowdLate).Seconds()
		var made []int
		for addr, n := range end.made { // of those that are still there
			made = append(made, n-late.made[addr])
		}
		mean, uneven := deviation(made)
		streams, lines, pulses, largest := c.sizes()
		t.Logf("wanted %v of %.0f needed; then stall %.2f %%, %.0f samples of each node, uneven by %.2f; %d moves of %d batches; a node has %d streams and %d lines at most; %d pulses of %d bytes at most",
			wanted, need, 100*stall, mean, uneven, end.moves, end.batches, streams, lines, pulses, largest)
		last := float64(wanted[len(wanted)-1])
		if turns(wanted) > 2 || float64(slices.Max(wanted)) > 4*1.15*need+crowdJobs || last < need || last > 1.15*need+crowdJobs {
			t.Errorf("wanted %v: not a rise and a fall to what is needed, %.0f, and its headroom", wanted, need)
		}
		if chance := math.Sqrt(crowdBatch / mean); stall > 0.01 || uneven > 0.6+chance { // of whole batches, while windows shrink of few
			t.Errorf("stall %.2f %%, work uneven by %.2f", 100*stall, uneven)
		}
		connections := float64(len(trainers)) * max(8, 4*math.Ceil(1.1*need/float64(len(trainers))))
		if most := connections/float64(len(end.made)) + 6*math.Sqrt(connections/float64(len(end.made))) + 1; float64(streams) > most || lines > streams {
			t.Errorf("%d streams at a node, at most %.0f are chance; %d lines", streams, most, lines)
		}
		if largest > 100+45*mostStepsInPulse {
			t.Errorf("a pulse of %d bytes", largest)
		}
		for _, r := range trainers {
			r.loader.Close()
		}
		time.Sleep(time.Minute) // what nodes were at ends
	})
}

// mostStepsInPulse is how many steps end within 0.25 s and one that is blocked for a second.
const mostStepsInPulse = 4

// sizes are the most streams and lines of a book that a node had, how many pulses it heard, and the largest.
func (c *crowd) sizes() (streams, lines, pulses, largest int) {
	for _, n := range c.all() {
		n.mu.Lock()
		streams, pulses, largest = max(streams, n.most), max(pulses, n.pulses), max(largest, n.largest)
		n.mu.Unlock()
		kept := 0
		for _, j := range n.book.Jobs(time.Now()) {
			kept += len(j.Ranks)
		}
		lines = max(lines, kept)
	}
	return streams, lines, pulses, largest
}
