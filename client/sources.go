package client

import (
	"slices"

	"github.com/feedwater-io/feedwater/client/membership"
)

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
