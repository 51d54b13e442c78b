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

// What a job pins at its start must not hang on who answers first: its ranks would pin different things. So a fleet
// that was not told of all that the job began with hears all its nodes before it pins one, of a large fleet the same
// eight on every rank. If their data differs they are asked to list it anew, once: a list that was kept may be older than
// the data. If it still differs nobody can know which is meant, and Open fails; if their numerics or
// revisions do, those of most nodes are pinned.

// settleTime is how long the other nodes may take after the first answer. One that takes longer is judged by what was
// pinned without it.
const answerWait = time.Second

// jobOpener is the beginning of a job: what its nodes answer is weighed, and one answer pinned. It belongs to the
// fleet's goroutine, but for ready.
type jobOpener struct {
	job    *job
	roster *roster

	ready      chan struct{} // closed when the job's info or openErr is there
	openErr    error
	readied    sync.Once
	answersDue time.Time // when to wait no longer for further answers; zero: there was none
	split      error     // the nodes' data differs, so that the job cannot begin
}

// judgeJoin judges a node's answer, at once or when the others have answered too.
func (o *jobOpener) judgeJoin(m *member, r *pb.OpenResponse, verdict chan<- joinDecision) {
	anew := m.endRelist()
	switch v := o.judgeAnswer(m, r, anew); {
	case o.job.ctx.Err() != nil:
		verdict <- joinDecision{err: ErrClosed}
	case v.err == nil && o.job.info.Load() != nil:
		o.job.pinStore(m.node.Addr(), r)
		verdict <- v
	case v.err != nil:
		verdict <- v.orRelist(m)
	case o.split != nil:
		verdict <- joinDecision{err: o.split}
	case o.job.isResumed():
		o.job.pinAnswer(r)
		o.job.pinStore(m.node.Addr(), r)
		verdict <- v
	default:
		m.proposal = &proposal{r, verdict}
		if o.answersDue.IsZero() {
			o.answersDue = time.Now().Add(answerWait)
		}
		o.pinWhenReady(time.Now())
	}
}

// pinWhenReady pins what the job begins with, or finds that it cannot begin, once every node has been heard of or
// settleTime is over.
func (o *jobOpener) pinWhenReady(now time.Time) {
	answered := o.proposers()
	if len(answered) == 0 || o.split != nil || now.Before(o.answersDue) && o.awaitsAnswers() {
		return
	}
	if o.awaitsLists() || o.findSplit(answered) {
		return
	}
	o.job.pinAnswer(mostCommonAnswer(answered))
	for _, m := range answered {
		v := o.judgeAnswer(m, m.proposal.info, false)
		if v.err == nil {
			o.job.pinStore(m.node.Addr(), m.proposal.info)
		}
		m.sendDecision(v)
	}
	o.roster.reconnectByRank(now)
}

// findSplit reports whether the nodes' data differs. Then those that were not asked before are to list it anew; if all
// were, Open fails.
func (o *jobOpener) findSplit(answered []*member) bool {
	first := answered[0]
	for _, m := range answered[1:] {
		if m.proposal.info.Fingerprint != first.proposal.info.Fingerprint {
			if !relistAll(answered) {
				o.failSplit(first, m)
			}
			return true
		}
	}
	one, other := findOtherVersions(answered)
	if one != nil && !relistAll(answered) {
		o.failVersions(one, other)
	}
	return one != nil
}

// relistAll reports whether a node is to list its data anew. Its answer is awaited then.
func relistAll(answered []*member) bool {
	asked := false
	for _, m := range answered {
		if m.askToRelist() {
			asked = true
			m.sendDecision(joinDecision{err: errRelist})
		}
	}
	return asked
}

// awaitsLists reports whether a node lists its data anew: however long it takes, nothing is pinned before.
func (o *jobOpener) awaitsLists() bool {
	return slices.ContainsFunc(o.roster.members, func(m *member) bool { return m.relist.asked })
}

// orRelist has a node list its data anew that was refused for it, if that is due.
func (d joinDecision) orRelist(m *member) joinDecision {
	if isOfDifference(d.err) && m.askToRelist() {
		return joinDecision{err: errRelist}
	}
	return d
}

// isOfDifference reports whether an error says that a node's data are there and others'.
func isOfDifference(err error) bool {
	var data *node.DataError
	return errors.As(err, &data) && data.Differs
}

// reconnectByRank goes over from the nodes that all ranks ask first, so that they pin the same, to those that this rank
// prefers.
func (r *roster) reconnectByRank(now time.Time) {
	r.connected = time.Time{}
	r.connectMembers(now)
	for _, m := range r.members {
		if m.chosen && !m.surplus.IsZero() {
			m.releaseStream()
		}
	}
}

// proposers are the nodes whose answers wait.
func (o *jobOpener) proposers() []*member {
	var answered []*member
	for _, m := range o.roster.members {
		if m.proposal != nil {
			answered = append(answered, m)
		}
	}
	return answered
}

// awaitsAnswers reports whether there may be a node that has not been heard of.
func (o *jobOpener) awaitsAnswers() bool {
	unheard := func(m *member) bool { return m.chosen && !m.tried && m.proposal == nil }
	return o.roster.awaitsSources() || o.roster.connected.IsZero() || slices.ContainsFunc(o.roster.members, unheard)
}

// mostCommonAnswer is the answer that most nodes gave; where as many gave another, the same for all ranks.
func mostCommonAnswer(answered []*member) *pb.OpenResponse {
	kind := func(m *member) string { return kindOf(m.proposal.info) }
	count := map[string]int{}
	for _, m := range answered {
		count[kind(m)]++
	}
	return slices.MinFunc(answered, func(a, b *member) int {
		return cmp.Or(cmp.Compare(count[kind(b)], count[kind(a)]), cmp.Compare(kind(a), kind(b)), cmp.Compare(buildOf(a.proposal.info), buildOf(b.proposal.info)))
	}).proposal.info
}

// failSplit fails Open for two nodes whose data differs, as soon as it is known how.
func (o *jobOpener) failSplit(a, b *member) {
	ours, theirs := node.Side{Node: a.node, Info: a.proposal.info}, node.Side{Node: b.node, Info: b.proposal.info}
	o.split = splitError(ours, theirs, "")
	o.job.goroutines.Go(func() {
		err := splitError(ours, theirs, " ("+node.DescribeDifference(o.job.ctx, ours, theirs)+")")
		o.job.inbox.post(func() { o.refuseAll(err) })
	})
}

// refuseAll fails Open, and all whose answers wait.
func (o *jobOpener) refuseAll(err error) {
	o.failOpen(err)
	for _, m := range o.proposers() {
		m.sendDecision(joinDecision{err: err})
	}
}

// failVersions fails Open for two nodes that list other versions of the same objects.
func (o *jobOpener) failVersions(a, b *member) {
	o.split = &node.DataError{Message: fmt.Sprintf("%s has other versions of objects, with the same names and sizes, than %s has in the same bucket, "+
		"and both were asked to list it anew: they were replaced meanwhile, and a job that begins cannot know which is meant. Start again", b.node.Addr(), a.node.Addr())}
	o.refuseAll(o.split)
}

func splitError(ours, theirs node.Side, how string) error {
	return &node.DataError{Message: fmt.Sprintf("%s has other data than %s%s, and a job that begins cannot know which is meant: "+
		"give all nodes the same data, or name only those that have it", theirs.Node.Addr(), ours.Node.Addr(), how)}
}

// sendDecision ends the wait of a node's answer.
func (m *member) sendDecision(v joinDecision) {
	m.proposal.decision <- v
	m.proposal = nil
}

// judgeAnswer compares a node's answer, of data that it listed anew or not, with what the job has pinned. It runs on the
// fleet's goroutine.
func (o *jobOpener) judgeAnswer(m *member, r *pb.OpenResponse, anew bool) joinDecision {
	first := o.job.info.Load()
	numerics, fingerprint := o.job.options.Numerics, o.job.options.Fingerprint
	if first != nil {
		numerics, fingerprint = first.Numerics, first.Fingerprint
	}
	switch {
	case numerics != "" && r.Numerics != numerics:
		return joinDecision{err: &node.NumericsError{Pinned: numerics, Found: r.Numerics,
			Message: fmt.Sprintf("other pixels than the job began with (numerics %.12s, the job's are %.12s)", r.Numerics, numerics)}}
	case o.job.checkRevisions(r) != nil:
		return joinDecision{err: o.job.checkRevisions(r)}
	case fingerprint != "" && r.Fingerprint != fingerprint:
		return joinDecision{newMismatch("data", r.Fingerprint, fingerprint), o.roster.referenceNode(), first}
	case o.job.stores.Check(m.node.Addr(), r) != nil:
		return joinDecision{err: o.job.stores.Check(m.node.Addr(), r)}
	case first != nil && masksOf(r) != masksOf(first):
		return joinDecision{err: newMismatch("masks", masksOf(r), masksOf(first))}
	case m.changed != "" && (!anew || !m.hasItsData(r)):
		return joinDecision{err: &node.DataError{Differs: true, Message: "the names and sizes that the job began with, which do not tell whether the pixels are the same"}}
	case first != nil && r.PlanHash != first.PlanHash:
		return joinDecision{err: &batch.PlanError{Field: "plan", Message: fmt.Sprintf("means other batches there (hash %.12s, the job's is %.12s): another version?", r.PlanHash, first.PlanHash)}}
	}
	return joinDecision{}
}

// newMismatch says that a node's data, or masks, are not the job's, by their fingerprints.
func newMismatch(what, found, want string) *node.DataError {
	return &node.DataError{Differs: true, Message: fmt.Sprintf("other %s than the job began with (fingerprint %.12s, the job's is %.12s)", what, found, want)}
}

// masksOf is the fingerprint of a node's masks; empty where there are none.
func masksOf(r *pb.OpenResponse) string {
	var plan struct {
		Masks struct{ Fingerprint string }
	}
	_ = json.Unmarshal([]byte(r.Plan), &plan) // what is no plan has no masks
	return plan.Masks.Fingerprint
}

// finishOpen and failed end the wait of Open.
func (o *jobOpener) finishOpen() { o.readied.Do(func() { close(o.ready) }) }

func (o *jobOpener) failOpen(err error) {
	o.readied.Do(func() {
		o.openErr = err
		close(o.ready)
	})
}

// hasFailed reports whether Open returns an error.
func (o *jobOpener) hasFailed() bool {
	select {
	case <-o.ready:
		return o.openErr != nil
	default:
		return false
	}
}

// checkOpen ends the wait of Open when every node has been tried and one or more of them refused for good, or when one
// refuses the plan. Before, it is seen whether the others agree without the node that failed. Where a node has answered
// and been found fit, its stream is waited for, unless all refuse that for good.
func (o *jobOpener) checkOpen() {
	now := time.Now()
	o.pinWhenReady(now)
	if o.split != nil || o.roster.awaitsSources() || o.roster.awaitsReturn(now) || o.job.info.Load() != nil && !o.roster.allLeftOut() {
		return
	}
	refused := false
	for _, m := range o.roster.members {
		var plan *batch.PlanError
		if errors.As(m.err, &plan) {
			o.failOpen(m.err)
			return
		}
		if !m.tried {
			return
		}
		refused = refused || m.leftOut
	}
	if refused {
		o.failOpen(o.roster.allErrors())
	}
}

// findOtherVersions finds two nodes whose answers tell other versions of one store; nil if there are none.
func findOtherVersions(answered []*member) (first, other *member) {
	told := map[string]*member{}
	for _, m := range answered {
		store := m.proposal.info.GetStore()
		if before := told[store]; before != nil && store != "" && before.proposal.info.GetVersions() != m.proposal.info.GetVersions() {
			return before, m
		}
		told[store] = m
	}
	return nil, nil
}
