package client

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// What a job pins at its start must not hang on who answers first: its ranks would pin different things. So a fleet that was not told
// of all that the job began with hears all its nodes before it pins one, of a large fleet the same eight on every rank. If their data differs nobody can know
// which is meant, and Open fails; if their numerics or revisions do, those of most nodes are pinned. The functions here run on the fleet's goroutine.

// settleTime is how long the other nodes may take after the first answer. One that takes longer is judged by what was pinned without it.
const settleTime = time.Second

// proposal is an answer that waits for those of the other nodes.
type proposal struct {
	info    *pb.OpenResponse
	verdict chan<- judgement
}

// goesOn reports whether the options say all that a job pins. A state whose Numerics and
// Revisions were left out, to go on with other bytes, says its fingerprint alone.
func (f *Fleet) goesOn() bool {
	o := &f.options
	return o.Fingerprint != "" && o.Numerics != "" && o.Revisions != nil
}

// consider judges a node's answer, at once or when the others have answered too.
func (f *Fleet) consider(m *member, r *pb.OpenResponse, verdict chan<- judgement) {
	switch v := f.judge(m, r); {
	case f.ctx.Err() != nil:
		verdict <- judgement{err: ErrClosed}
	case v.err != nil || f.info.Load() != nil:
		verdict <- v
	case f.split != nil:
		verdict <- judgement{err: f.split}
	case f.goesOn():
		f.pin(r)
		verdict <- v
	default:
		m.proposal = &proposal{r, verdict}
		if f.settleBy.IsZero() {
			f.settleBy = time.Now().Add(settleTime)
		}
		f.settle(time.Now())
	}
}

// settle pins what the job begins with, or finds that it cannot begin, once every node has been heard of or settleTime is over.
func (f *Fleet) settle(now time.Time) {
	answered := f.proposed()
	if len(answered) == 0 || f.split != nil || now.Before(f.settleBy) && f.awaits() {
		return
	}
	first := answered[0]
	for _, m := range answered[1:] {
		if m.proposal.info.Fingerprint != first.proposal.info.Fingerprint {
			f.part(first, m)
			return
		}
	}
	f.pin(usual(answered))
	for _, m := range answered {
		m.decided(f.judge(m, m.proposal.info))
	}
	f.disperse(now)
}

// disperse goes over from the nodes that all ranks ask first, so that they pin the same, to those that this rank prefers.
func (f *Fleet) disperse(now time.Time) {
	f.connected = time.Time{}
	f.connect(now)
	for _, m := range f.members {
		if m.chosen && !m.surplus.IsZero() {
			m.leave()
		}
	}
}

// proposed are the nodes whose answers wait.
func (f *Fleet) proposed() []*member {
	var answered []*member
	for _, m := range f.members {
		if m.proposal != nil {
			answered = append(answered, m)
		}
	}
	return answered
}

// awaits reports whether there may be a node that has not been heard of.
func (f *Fleet) awaits() bool {
	unheard := func(m *member) bool { return m.chosen && !m.tried && m.proposal == nil }
	return f.expects() || f.connected.IsZero() || slices.ContainsFunc(f.members, unheard)
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
func (f *Fleet) part(a, b *member) {
	ours, theirs := node.Side{Node: a.node, Info: a.proposal.info}, node.Side{Node: b.node, Info: b.proposal.info}
	f.split = splitError(ours, theirs, "")
	f.keepers.Go(func() {
		err := splitError(ours, theirs, " ("+node.DescribeDifference(f.ctx, ours, theirs)+")")
		f.inbox.post(func() {
			f.failed(err)
			for _, m := range f.proposed() {
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
