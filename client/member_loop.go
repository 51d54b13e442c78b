package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	progressFirst = time.Second // after which an Open that is not answered is asked about
	progressEvery = 2 * time.Second
)

// openPlan opens the plan at the node. Meanwhile the fleet hears which folders the node lists for it, and how far it
// is.
func (m *member) openPlan(ctx context.Context, request *pb.OpenRequest) (*pb.OpenResponse, error) {
	node, ok := m.node.(node.Progressor)
	if !ok {
		return m.openOrPut(ctx, request)
	}
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	asked.Go(func() { m.pollProgress(asking, node, &pb.ProgressRequest{Plan: request.GetPlan()}) })
	r, err := m.openOrPut(ctx, request)
	stop()
	asked.Wait()
	return r, err
}

// openOrPut opens the plan at the node. If that has not the plan's table it is given it, and asked again.
func (m *member) openOrPut(ctx context.Context, request *pb.OpenRequest) (*pb.OpenResponse, error) {
	r, err := m.node.Open(ctx, request)
	var missing *node.TableError
	if err == nil || !errors.As(node.FromStatus(err), &missing) {
		return r, err
	}
	table := m.roster.job.options.Table
	putter, can := m.node.(node.Putter)
	if table == nil || table.SHA256 != missing.Table || !can {
		return nil, &node.DataError{Message: missing.Message + ", and it is not at hand here"}
	}
	if err := putter.Put(ctx, table.SHA256, table.Bytes, io.NewSectionReader(table.Text, 0, table.Bytes)); err != nil {
		return nil, err
	}
	return m.node.Open(ctx, request)
}

// pollProgress asks a node for its progress until ctx ends; one that knows no such question is not asked again.
func (m *member) pollProgress(ctx context.Context, node node.Progressor, request *pb.ProgressRequest) {
	wait := time.NewTimer(progressFirst)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-ctx.Done():
			m.roster.job.inbox.post(func() { m.scans = nil })
			return
		}
		limited, cancel := context.WithTimeout(ctx, progressEvery)
		r, err := node.Progress(limited, request)
		cancel()
		if status.Code(err) == codes.Unimplemented {
			return
		}
		if err == nil {
			m.roster.job.inbox.post(func() { m.scans = r.Scans })
		}
		wait.Reset(progressEvery)
	}
}

// startLoop keeps a stream to the node from now on, whenever the gate is open, until end.
func (m *member) startLoop() {
	if m.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(m.roster.job.ctx)
	m.stop = stop
	m.roster.job.goroutines.Go(func() {
		defer stop()
		m.runLoop(ctx)
	})
}

// stopLoop lets go of the node for good.
func (m *member) stopLoop() {
	if m.stop != nil {
		m.stop()
	}
}

// runLoop holds a stream to the node open until ctx ends.
func (m *member) runLoop(ctx context.Context) {
	delay, spread, alone := backoffMin, m.newJitter(), 0
	for {
		m.gate.wait(ctx)
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		err := m.serveStream(ctx)
		m.roster.job.inbox.post(func() { m.roster.events.handleLoss(m, err) })
		if time.Since(began) > backoffMax {
			delay, alone = backoffMin, 0
		}
		wait := delay
		if m.roster.up.Load() == 0 && alone < attemptsAlone {
			wait = min(wait, backoffAlone)
			alone++
		}
		wait = time.Duration(float64(wait) * (0.75 + spread.Float64()/2))
		delay = min(2*delay, backoffMax)
		if isRefusal(err) && m.roster.up.Load() > 0 {
			wait = leftOutWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	if err := m.node.Close(); err != nil {
		m.roster.job.log.Warn("closing a node failed", "node", m.node.Addr(), "err", err)
	}
}

// newJitter are random numbers by which the waits vary, so that not all trainers come back at once.
func (m *member) newJitter() *rand.Rand {
	seed := m.roster.job.options.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, xxh3.HashString(m.node.Addr())))
}

// serveStream opens the plan at the node, has the fleet judge the answer, and holds the stream until it ends. It
// returns why.
func (m *member) serveStream(ctx context.Context) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	r, err := m.openAgreed(ctx)
	if err != nil {
		return err
	}
	s := &session{member: m, quit: quit, workers: int(r.Workers), listing: r.GetListing(), codecs: r.GetRevisions().GetCodecs(), build: buildOf(r)}
	notice := func(n *pb.Notice) {
		now := time.Now()
		m.roster.job.inbox.postDeferred(func() { m.roster.events.handleNotice(s, n, now) })
	}
	s.stream, err = m.node.Fetch(ctx, m.roster.job.newStart(r), notice)
	if err != nil {
		return node.FromStatus(err)
	}
	defer s.stream.Close()
	m.roster.up.Add(1)
	defer m.roster.up.Add(-1)
	m.roster.job.inbox.post(func() { m.roster.events.handleJoin(s) })
	select {
	case <-s.stream.Ended():
		return node.FromStatus(s.stream.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openAgreed opens the plan at the node, and has the fleet judge the answer. A node whose data the fleet does not agree
// with may have a list of it that was made before the data changed, or was put right again: it is asked once more, for a
// list that is no older than this opening.
func (m *member) openAgreed(ctx context.Context) (*pb.OpenResponse, error) {
	began := time.Now()
	r, err := m.openJudged(ctx, nil)
	if !errors.Is(err, errRelist) {
		return r, err
	}
	return m.openJudged(ctx, durationpb.New(time.Since(began)))
}

// errRelist says that a node has to list its data anew.
var errRelist = errors.New("the data is listed anew")

// openJudged is openAgreed, once.
func (m *member) openJudged(ctx context.Context, within *durationpb.Duration) (*pb.OpenResponse, error) {
	o := &m.roster.job.options
	r, err := m.openPlan(ctx, &pb.OpenRequest{Plan: o.Plan, Job: o.Job, Protocol: pb.Protocol, Trainer: o.Trainer, ListedWithin: within})
	if err != nil {
		return nil, m.orRelist(ctx, node.FromStatus(err))
	}
	if err := checkProtocol(r, pb.OldestProtocol, o.Trainer.GetBuild()); err != nil {
		return nil, err
	}
	if err := node.CheckOpened(r); err != nil {
		return nil, err
	}
	return r, m.awaitDecision(ctx, r)
}

// orRelist is errRelist in place of an error of the data, of a node that is to list it anew.
func (m *member) orRelist(ctx context.Context, err error) error {
	if !isOfDifference(err) {
		return err
	}
	v, ended := m.askFleet(ctx, func(verdict chan<- joinDecision) { verdict <- joinDecision{err: err}.orRelist(m) })
	if ended != nil {
		return ended
	}
	return v.err
}

// askToRelist reports whether a node is to list its data anew: it was not asked before, or that was a while ago. Before a
// job has begun each is asked once, and seldom later while its data never was the job's.
func (m *member) askToRelist() bool {
	q, most := &m.relist, relistMost
	if m.hadStream && len(m.roster.live) == 0 {
		most = relistAlone
	}
	if q.wait > 0 && m.roster.job.info.Load() == nil || !q.isDue(most, time.Now()) {
		return false
	}
	q.asked, q.wait = true, min(max(2*q.wait, relistFirst), relistMost)
	if !m.hadStream {
		q.wait = relistMost
	}
	m.roster.job.log.Info("node lists its data anew, since it is not the job's", "node", m.node.Addr())
	return true
}

// endRelist notes that a node has answered, or failed to, and reports whether it was asked to list its data anew.
func (m *member) endRelist() bool {
	was := m.relist.asked
	if was {
		m.relist.asked, m.relist.last = false, time.Now()
	}
	return was
}

// awaitDecision asks the fleet whether the node may take part. Where the data differs it says what differs.
func (m *member) awaitDecision(ctx context.Context, r *pb.OpenResponse) error {
	v, ended := m.askFleet(ctx, func(verdict chan<- joinDecision) { m.roster.events.judgeJoin(m, r, verdict) })
	if ended != nil {
		return ended
	}
	var data *node.DataError
	if errors.As(v.err, &data) && v.reference != nil {
		data.Message += ": " + node.DescribeDifference(ctx, node.Side{Node: v.reference, Info: v.info}, node.Side{Node: m.node, Info: r})
	}
	return v.err
}

// askFleet has the fleet judge, in its loop, and waits for its decision. The error is that of a context that ended before.
func (m *member) askFleet(ctx context.Context, judge func(verdict chan<- joinDecision)) (joinDecision, error) {
	verdict := make(chan joinDecision, 1)
	m.roster.job.inbox.post(func() { judge(verdict) })
	select {
	case v := <-verdict:
		return v, nil
	case <-ctx.Done():
		return joinDecision{}, ctx.Err()
	}
}

// isRefusal reports whether a node said no for a reason that does not go away by itself.
func isRefusal(err error) bool {
	var plan *batch.PlanError
	var data *node.DataError
	var numerics *node.NumericsError
	var revision *node.RevisionError
	var access *node.AccessError
	var version *node.VersionError
	return errors.As(err, &revision) || errors.As(err, &plan) || errors.As(err, &data) || errors.As(err, &numerics) || errors.As(err, &access) || errors.As(err, &version)
}

// checkProtocol leaves nodes out that speak no revision of the contract from oldest on.
func checkProtocol(r *pb.OpenResponse, oldest uint32, build string) error {
	if spoken := max(r.Protocol, 1); spoken < oldest {
		return &node.VersionError{Message: fmt.Sprintf("it speaks protocol %d (build %s), and this side (build %s) needs %d or later: update the node, or use feedwater of its version here",
			spoken, buildOf(r), build, oldest)}
	}
	return nil
}

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// backoffAlone is the most while there is no stream at all, so often: then the loop stands still until a node is
	// back, most often one that restarts.
	backoffAlone  = 300 * time.Millisecond
	attemptsAlone = 100
	leftOutWait   = 30 * time.Second // until a node that was left out is looked at again while others are there
)

// joinDecision is a fleet's answer to a node that wants to join; reference is a node that is in, where the data
// differs.
type joinDecision struct {
	err       error
	reference node.Node
	info      *pb.OpenResponse
}

// gate lets the loop of a member connect, or keeps it from doing so. The zero value is shut.
type gate struct {
	mu     sync.Mutex
	opened bool
	open   chan struct{} // closed while the gate is open
}

func (g *gate) setOpen(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open == g.opened:
	case open:
		close(g.openChannel())
	default:
		g.open = nil
	}
	g.opened = open
}

// openChannel is closed while the gate is open. mu is held.
func (g *gate) openChannel() chan struct{} {
	if g.open == nil {
		g.open = make(chan struct{})
	}
	return g.open
}

// wait returns when the gate is open or ctx ends.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	open := g.openChannel()
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}
