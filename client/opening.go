package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// What a job pins at its start must not hang on who answers first: its ranks would pin different things. So a fleet that was not told
// of all that the job began with hears all its nodes before it pins one, of a large fleet the same eight on every rank. If their data differs nobody can know
// which is meant, and Open fails; if their numerics or revisions do, those of most nodes are pinned.

// settleTime is how long the other nodes may take after the first answer. One that takes longer is judged by what was pinned without it.
const settleTime = time.Second

// opening is the beginning of a job: what its nodes answer is weighed, and one answer pinned. It belongs to the fleet's goroutine, but for ready.
type opening struct {
	job    *job
	roster *roster

	ready    chan struct{} // closed when the job's info or openErr is there
	openErr  error
	readied  sync.Once
	settleBy time.Time // when to wait no longer for further answers; zero: there was none
	split    error     // the nodes' data differs, so that the job cannot begin
}

// proposal is an answer that waits for those of the other nodes.
type proposal struct {
	info    *pb.OpenResponse
	verdict chan<- judgement
}

// consider judges a node's answer, at once or when the others have answered too.
func (o *opening) consider(m *member, r *pb.OpenResponse, verdict chan<- judgement) {
	switch v := o.judge(m, r); {
	case o.job.ctx.Err() != nil:
		verdict <- judgement{err: ErrClosed}
	case v.err != nil || o.job.info.Load() != nil:
		verdict <- v
	case o.split != nil:
		verdict <- judgement{err: o.split}
	case o.job.goesOn():
		o.job.pin(r)
		verdict <- v
	default:
		m.proposal = &proposal{r, verdict}
		if o.settleBy.IsZero() {
			o.settleBy = time.Now().Add(settleTime)
		}
		o.settle(time.Now())
	}
}

// settle pins what the job begins with, or finds that it cannot begin, once every node has been heard of or settleTime is over.
func (o *opening) settle(now time.Time) {
	answered := o.proposed()
	if len(answered) == 0 || o.split != nil || now.Before(o.settleBy) && o.awaits() {
		return
	}
	first := answered[0]
	for _, m := range answered[1:] {
		if m.proposal.info.Fingerprint != first.proposal.info.Fingerprint {
			o.part(first, m)
			return
		}
	}
	o.job.pin(usual(answered))
	for _, m := range answered {
		m.decided(o.judge(m, m.proposal.info))
	}
	o.roster.disperse(now)
}

// disperse goes over from the nodes that all ranks ask first, so that they pin the same, to those that this rank prefers.
func (r *roster) disperse(now time.Time) {
	r.connected = time.Time{}
	r.connect(now)
	for _, m := range r.members {
		if m.chosen && !m.surplus.IsZero() {
			m.leave()
		}
	}
}

// proposed are the nodes whose answers wait.
func (o *opening) proposed() []*member {
	var answered []*member
	for _, m := range o.roster.members {
		if m.proposal != nil {
			answered = append(answered, m)
		}
	}
	return answered
}

// awaits reports whether there may be a node that has not been heard of.
func (o *opening) awaits() bool {
	unheard := func(m *member) bool { return m.chosen && !m.tried && m.proposal == nil }
	return o.roster.expects() || o.roster.connected.IsZero() || slices.ContainsFunc(o.roster.members, unheard)
}

// usual is the answer that most nodes gave; where as many gave another, the same for all ranks.
func usual(answered []*member) *pb.OpenResponse {
	kind := func(m *member) string { return kindOf(m.proposal.info) }
	count := map[string]int{}
	for _, m := range answered {
		count[kind(m)]++
	}
	return slices.MinFunc(answered, func(a, b *member) int {
		return cmp.Or(cmp.Compare(count[kind(b)], count[kind(a)]), cmp.Compare(kind(a), kind(b)), cmp.Compare(buildOf(a.proposal.info), buildOf(b.proposal.info)))
	}).proposal.info
}

// part fails Open for two nodes whose data differs, as soon as it is known how.
func (o *opening) part(a, b *member) {
	ours, theirs := node.Side{Node: a.node, Info: a.proposal.info}, node.Side{Node: b.node, Info: b.proposal.info}
	o.split = splitError(ours, theirs, "")
	o.job.keepers.Go(func() {
		err := splitError(ours, theirs, " ("+node.DescribeDifference(o.job.ctx, ours, theirs)+")")
		o.job.inbox.post(func() {
			o.failed(err)
			for _, m := range o.proposed() {
				m.decided(judgement{err: err})
			}
		})
	})
}

func splitError(ours, theirs node.Side, how string) error {
	return &node.DataError{Message: fmt.Sprintf("%s has other data than %s%s, and a job that begins cannot know which is meant: "+
		"give all nodes the same data, or name only those that have it", theirs.Node.Addr(), ours.Node.Addr(), how)}
}

// decided ends the wait of a node's answer.
func (m *member) decided(v judgement) {
	m.proposal.verdict <- v
	m.proposal = nil
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

// opened and failed end the wait of Open.
func (o *opening) opened() { o.readied.Do(func() { close(o.ready) }) }

func (o *opening) failed(err error) {
	o.readied.Do(func() {
		o.openErr = err
		close(o.ready)
	})
}

// checkOpen ends the wait of Open when every node has been tried and one or more of them refused for good, or when one refuses the
// plan. Before, it is seen whether the others have settled without the node that failed. Where a node has answered and been found fit, its
// stream is waited for, unless all refuse that for good.
func (o *opening) checkOpen() {
	o.settle(time.Now())
	if o.split != nil || o.roster.expects() || o.job.info.Load() != nil && !o.roster.allLeftOut() {
		return
	}
	refused := false
	for _, m := range o.roster.members {
		var plan *batch.PlanError
		if errors.As(m.err, &plan) {
			o.failed(m.err)
			return
		}
		if !m.tried {
			return
		}
		refused = refused || m.leftOut
	}
	if refused {
		o.failed(o.roster.allErrors())
	}
}
