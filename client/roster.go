package client

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// roster are the nodes of a fleet, and the sources that tell of them. It belongs to the fleet's goroutine, but for up.
type roster struct {
	job     *job
	events  nodeEvents
	members []*member
	live    []*member // those that have a stream
	sources []*source
	up      atomic.Int32 // streams that are open

	wantSamples int       // samples of the latest want
	connected   time.Time // when nodes were chosen last; zero: there are new ones
	removed     time.Time // when a node that took part was last listed no more; zero: none was
	needed      [4]int    // connections, by the last seconds
}

// nodeEvents are told what becomes of the nodes, on the fleet's goroutine.
type nodeEvents interface {
	handleJoin(*session)
	handleLoss(*member, error)
	handleNotice(*session, *pb.Notice, time.Time)
	// judgeJoin judges the answer of a node that wants to take part, now or later.
	judgeJoin(*member, *pb.OpenResponse, chan<- joinDecision)
}

// hasRemote reports whether there is a stream to another process.
func (r *roster) hasRemote() bool {
	return slices.ContainsFunc(r.live, func(m *member) bool { return m.node != r.job.options.Local })
}

// newMember is a node that may enter. hint says that a source told of it, which may err.
func (r *roster) newMember(n node.Node, hint bool) *member {
	return &member{roster: r, node: n, hint: hint}
}

// addMember takes a node in, to which the fleet may connect from now on.
func (r *roster) addMember(m *member) {
	m.common = pick.NodeScore(r.job.options.Job, m.node.Addr())
	m.score = pick.NodeScore(r.job.options.Job+" "+strconv.Itoa(r.job.options.Rank), m.node.Addr())
	r.members = append(r.members, m)
	r.connected = time.Time{}
}

func (r *roster) replaceNodes(nodes map[string]node.Node) {
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
		if m.session != nil {
			r.removed = time.Now()
		}
		m.stopLoop()
	}
	r.members = stay
	r.refreshLive()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		r.addMember(r.newMember(nodes[addr], false))
	}
}

// refreshLive finds the nodes that have a stream. Of a large fleet they are few, and what is done for each event is
// done for them alone.
func (r *roster) refreshLive() {
	r.live = r.live[:0]
	for _, m := range r.members {
		if m.session != nil {
			r.live = append(r.live, m)
		}
	}
}

func (r *roster) allLeftOut() bool {
	return len(r.members) > 0 && !slices.ContainsFunc(r.members, func(m *member) bool { return m.session != nil || !m.leftOut })
}

// awaitsReturn reports whether a node that took part is listed no more since so short a time that it may be listed again. What is listed is a
// hint: while it errs, the nodes that are left may be those that can do nothing for the job.
func (r *roster) awaitsReturn(now time.Time) bool {
	return !r.removed.IsZero() && now.Sub(r.removed) < downWait
}

// isAlone reports whether this process is the only node.
func (r *roster) isAlone() bool { return len(r.members) == 1 && r.members[0].node.Addr() == node.Local }

// allErrors is the only node's error, or those of all nodes.
func (r *roster) allErrors() error {
	switch m := r.members[0]; {
	case r.isAlone():
		return node.OwnError(m.err)
	case len(r.members) == 1:
		return fmt.Errorf("node %s: %w%s", m.node.Addr(), m.err, node.AdviceOnBuild(m.err))
	}
	return &NodesError{r.nodeErrors()}
}

func (r *roster) nodeErrors() []NodeError {
	var errs []NodeError
	for _, m := range r.members {
		if state := m.stateAt(time.Now()); state != Unused {
			errs = append(errs, NodeError{m.node.Addr(), state, m.currentError(state)})
		}
	}
	return append(errs, r.sourceErrors()...)
}

// countUnfit is how many nodes refused a want for their build.
func (r *roster) countUnfit() (n int) {
	for _, m := range r.live {
		if len(m.differs) > 0 {
			n++
		}
	}
	return n
}

// referenceNode is a node of the job's data.
func (r *roster) referenceNode() node.Node {
	if len(r.live) == 0 {
		return nil
	}
	return r.live[0].node
}

// replayNodes are the nodes that are up, those that are not known to be in trouble first.
func (r *roster) replayNodes() []node.Node {
	var good, other []node.Node
	for _, m := range r.members {
		switch {
		case m.isUsable() && !time.Now().Before(m.busyUntil):
			good = append(good, m.node)
		case m.session != nil:
			other = append(other, m.node)
		}
	}
	return append(good, other...)
}

// madeAnew is in the error about a file that is another one than the list beside the data has: until that is made anew, a new Loader has the same error.
const madeAnew = "make it anew by feedwater snapshot"

// adviceOnChange says what takes data that has changed, as was told, where no node has the job's any more.
func (r *roster) adviceOnChange(told string) string {
	if r.referenceNode() != nil || strings.Contains(told, madeAnew) {
		return ""
	}
	return "; a new Loader, or the run started again without a saved state, takes the data as it is now"
}

// Membership is a hint, answers are the truth. What a source tells of is tried; what it no longer tells of stays while
// it answers, for the source may be late, or lie. A node goes when a later list, which is not empty, lacks it and it
// has no stream that speaks; if it ever had one, only when some other node has: a list of nothing but strangers that do
// not answer takes nobody's place. A node that shuts down ends its stream itself.

// source is one that the fleet follows.
type source struct {
	membership.Source
	answered bool
	nodes    []string // of its latest list that was not empty, sorted
	err      error    // why it cannot tell, or of an address
}

// addListed enters the nodes that are new. It returns an error if there is no node, since none of a source's addresses
// can be dialled at all.
func (r *roster) addListed(s *source, serverName string) error {
	refused, known := 0, map[string]bool{}
	for _, m := range r.members {
		known[m.node.Addr()] = true
	}
	for _, addr := range s.nodes {
		if known[addr] {
			continue
		}
		n, err := r.job.options.dial(addr, serverName)
		if err != nil {
			r.job.log.Warn("a listed node is passed over", "source", s, "node", addr, "err", err)
			refused, s.err = refused+1, err
			continue
		}
		r.addMember(r.newMember(n, true))
	}
	if refused == len(s.nodes) && len(r.members) == 0 {
		return s.err
	}
	return nil
}

// pruneMembers lets go of nodes that no source lists and that do not answer.
func (r *roster) pruneMembers() {
	if len(r.sources) == 0 {
		return
	}
	working := slices.ContainsFunc(r.members, (*member).isAnswering)
	r.members = slices.DeleteFunc(r.members, func(m *member) bool {
		if !m.hint || m.isAnswering() || r.isListed(m.node.Addr()) || m.hadStream && !working {
			return false
		}
		r.job.log.Info("node removed", "node", m.node.Addr())
		m.stopLoop()
		return true
	})
	r.refreshLive()
}

func (r *roster) isListed(addr string) bool {
	return slices.ContainsFunc(r.sources, func(s *source) bool {
		_, found := slices.BinarySearch(s.nodes, addr)
		return found
	})
}

// awaitsSources reports whether a source has not answered yet.
func (r *roster) awaitsSources() bool {
	return slices.ContainsFunc(r.sources, func(s *source) bool { return !s.answered })
}

// sourceErrors are what keeps sources from telling of nodes.
func (r *roster) sourceErrors() []NodeError {
	var errs []NodeError
	for _, s := range r.sources {
		if s.err != nil || len(s.nodes) == 0 {
			errs = append(errs, NodeError{s.String(), Connecting, s.err})
		}
	}
	return errs
}
