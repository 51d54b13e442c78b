package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// NodeState is a node as a fleet sees it.
type NodeState string

// The states.
const (
	Unused     NodeState = "unused"     // one of more than this trainer needs: it holds no stream to it
	Connecting NodeState = "connecting" // not heard of yet
	Scanning   NodeState = "scanning"   // it lists the data set's files, and answers then
	Ready      NodeState = "ready"
	Busy       NodeState = "busy"     // it asked to be left alone for a while
	Silent     NodeState = "silent"   // it holds wants and says nothing
	Doubted    NodeState = "doubted"  // it failed of late: others go first
	Draining   NodeState = "draining" // it shuts down
	LeftOut    NodeState = "left out" // other data, other numerics, or it refused
	Down       NodeState = "down"
)

// member is a node of a fleet. Its fields belong to the fleet's goroutine; keep runs in one of its own.
type member struct {
	roster *roster
	node   node.Node
	stop   context.CancelFunc // ends keep; nil: it was not begun, for the fleet never needed the node
	hint   bool               // a source told of it, which may err
	came   bool               // it had a stream once

	session   *session // nil while there is no stream
	err       error    // the last one
	tried     bool     // there was an answer, or there was none
	leftOut   bool
	proposal  *proposal  // its answer, while that waits
	scans     []*pb.Scan // what it lists, as it said while it was being opened
	changed   string     // why it was opened again: what it said of its data while it was in, and what was done
	gate      gate       // open while the fleet wants a stream to it
	chosen    bool       // it does
	surplus   time.Time  // since when it would not, if it had none
	score     uint64     // place in the trainer's order of preference; breaks ties
	common    uint64     // the same in the order that all ranks share
	speed     pick.Node
	trust     pick.Trust
	busyUntil time.Time
	warned    time.Time       // of its storage
	unfit     int             // wants in a row that it refused for its build
	differs   map[string]bool // units for which it did
	hand      pick.Hand       // as of the latest look, and what assign has planned since
	batches   uint64
	failures  uint64
	damaged   uint64
	samples   uint64 // delivered
	bytes     uint64
}

// session is one stream to a node, and what is going on there.
type session struct {
	member   *member
	stream   node.Stream
	quit     context.CancelFunc
	workers  int
	codecs   map[string]uint32 // their revisions, and the build that has them, as the node told
	build    string
	wants    []*asked
	samples  int       // of wants
	asked    time.Time // of the first want after it held none and had spoken since
	dropped  time.Time // when an attempt was given up last, which is answered too
	answered time.Time
	heard    uint64  // the latest attempt that it had heard of when it last told
	queued   float64 // core-seconds of all jobs, as it last told
	draining bool
	leaving  bool // the fleet needs it no more
	silence  silence
}

// reopen ends the stream to a node whose data is not what it was, so that it is asked for it anew. What it answers is told behind changed.
func (m *member) reopen(changed string) {
	m.changed = changed
	if m.session != nil {
		m.session.quit()
	}
}

// usable reports whether a node takes wants at all. A busy one does, later.
func (m *member) usable() bool {
	return m.session != nil && !m.session.draining && !m.session.leaving && !m.session.silence.on
}

func (m *member) state(now time.Time) NodeState {
	switch s := m.session; {
	case s == nil && !m.chosen:
		return Unused
	case s == nil && len(m.scans) > 0:
		return Scanning
	case s == nil && m.leftOut:
		return LeftOut
	case s == nil && m.tried:
		return Down
	case s == nil:
		return Connecting
	case s.draining:
		return Draining
	case s.silence.on:
		return Silent
	case now.Before(m.busyUntil):
		return Busy
	case m.trust.Doubted():
		return Doubted
	}
	return Ready
}

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// backoffAlone is the most while there is no stream at all, so often: then the loop stands still until a node is back, most often one
	// that restarts.
	backoffAlone  = 300 * time.Millisecond
	attemptsAlone = 100
	leftOutWait   = 30 * time.Second // until a node that was left out is looked at again while others are there
)

// begin keeps a stream to the node from now on, whenever the gate is open, until end.
func (m *member) begin() {
	if m.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(m.roster.job.ctx)
	m.stop = stop
	m.roster.job.keepers.Go(func() {
		defer stop()
		m.keep(ctx)
	})
}

// end lets go of the node for good.
func (m *member) end() {
	if m.stop != nil {
		m.stop()
	}
}

// keep holds a stream to the node open until ctx ends.
func (m *member) keep(ctx context.Context) {
	delay, spread, alone := backoffMin, m.spread(), 0
	for {
		m.gate.wait(ctx)
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		err := m.serve(ctx)
		m.roster.job.inbox.post(func() { m.roster.events.lost(m, err) })
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
		if refused(err) && m.roster.up.Load() > 0 {
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

// spread are random numbers by which the waits vary, so that not all trainers come back at once.
func (m *member) spread() *rand.Rand {
	seed := m.roster.job.options.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, xxh3.HashString(m.node.Addr())))
}

// serve opens the plan at the node, has the fleet judge the answer, and holds the stream until it ends. It returns why.
func (m *member) serve(ctx context.Context) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	o := &m.roster.job.options
	r, err := m.open(ctx, &pb.OpenRequest{Plan: o.Plan, Job: o.Job, Protocol: pb.Protocol, Trainer: o.Trainer})
	if err != nil {
		return node.FromStatus(err)
	}
	if err := checkProtocol(r, pb.OldestProtocol, o.Trainer.GetBuild()); err != nil {
		return err
	}
	if err := node.CheckOpened(r); err != nil {
		return err
	}
	if err := m.judge(ctx, r); err != nil {
		return err
	}
	s := &session{member: m, quit: quit, workers: int(r.Workers), codecs: r.GetRevisions().GetCodecs(), build: buildOf(r)}
	notice := func(n *pb.Notice) {
		now := time.Now()
		m.roster.job.inbox.put(func() { m.roster.events.noticed(s, n, now) })
	}
	s.stream, err = m.node.Fetch(ctx, m.roster.job.startOf(r), notice)
	if err != nil {
		return node.FromStatus(err)
	}
	defer s.stream.Close()
	m.roster.up.Add(1)
	defer m.roster.up.Add(-1)
	m.roster.job.inbox.post(func() { m.roster.events.joined(s) })
	select {
	case <-s.stream.Ended():
		return node.FromStatus(s.stream.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judge asks the fleet whether the node may take part. Where the data differs it says what differs.
func (m *member) judge(ctx context.Context, r *pb.OpenResponse) error {
	verdict := make(chan judgement, 1)
	m.roster.job.inbox.post(func() { m.roster.events.consider(m, r, verdict) })
	select {
	case v := <-verdict:
		var data *node.DataError
		if errors.As(v.err, &data) && v.reference != nil {
			data.Message += ": " + node.DescribeDifference(ctx, node.Side{Node: v.reference, Info: v.info}, node.Side{Node: m.node, Info: r})
		}
		return v.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refused reports whether a node said no for a reason that does not go away by itself.
func refused(err error) bool {
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

// judgement is a fleet's answer to a node that wants to join; reference is a node that is in, where the data differs.
type judgement struct {
	err       error
	reference node.Node
	info      *pb.OpenResponse
}

// judge compares a node's answer with what the job has pinned. It runs on the fleet's goroutine.
func (o *opening) judge(m *member, r *pb.OpenResponse) judgement {
	first := o.job.info.Load()
	numerics, fingerprint := o.job.options.Numerics, o.job.options.Fingerprint
	if first != nil {
		numerics, fingerprint = first.Numerics, first.Fingerprint
	}
	switch {
	case numerics != "" && r.Numerics != numerics:
		return judgement{err: &node.NumericsError{Pinned: numerics, Found: r.Numerics,
			Message: fmt.Sprintf("other pixels than the job began with (numerics %.12s, the job's are %.12s)", r.Numerics, numerics)}}
	case o.job.otherRevisions(r) != nil:
		return judgement{err: o.job.otherRevisions(r)}
	case fingerprint != "" && r.Fingerprint != fingerprint:
		return judgement{other("data", r.Fingerprint, fingerprint), o.roster.reference(), first}
	case first != nil && masksOf(r) != masksOf(first):
		return judgement{err: other("masks", masksOf(r), masksOf(first))}
	case m.changed != "":
		return judgement{err: &node.DataError{Message: "the names and sizes that the job began with, which do not tell whether the pixels are the same"}}
	case first != nil && r.PlanHash != first.PlanHash:
		return judgement{err: &batch.PlanError{Field: "plan", Message: fmt.Sprintf("means other batches there (hash %.12s, the job's is %.12s): another version?", r.PlanHash, first.PlanHash)}}
	}
	return judgement{}
}

// other says that a node's data, or masks, are not the job's, by their fingerprints.
func other(what, found, want string) *node.DataError {
	return &node.DataError{Message: fmt.Sprintf("other %s than the job began with (fingerprint %.12s, the job's is %.12s)", what, found, want)}
}

// masksOf is the fingerprint of a node's masks; empty where there are none.
func masksOf(r *pb.OpenResponse) string {
	var plan struct {
		Masks struct{ Fingerprint string }
	}
	_ = json.Unmarshal([]byte(r.Plan), &plan) // what is no plan has no masks
	return plan.Masks.Fingerprint
}

// reference is a node of the job's data.
func (r *roster) reference() node.Node {
	if len(r.live) == 0 {
		return nil
	}
	return r.live[0].node
}
