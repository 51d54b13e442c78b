package client

import (
	"slices"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/client/node"
)

// Membership is a hint, answers are the truth. What a source tells of is tried; what it no longer tells of stays while it answers, for
// the source may be late, or lie. A node goes when a later list, which is not empty, lacks it and it has no stream that speaks; if it ever
// had one, only when some other node has: a list of nothing but strangers that do not answer takes nobody's place. A node that shuts
// down ends its stream itself. The functions here run on the fleet's goroutine.

// source is one that the fleet follows.
type source struct {
	membership.Source
	answered bool
	nodes    []string // of its latest list that was not empty, sorted
	err      error    // why it cannot tell, or of an address
}

// follow begins to listen to the sources.
func (f *Fleet) follow() {
	for _, s := range f.sources {
		f.keepers.Go(func() {
			s.Watch(f.ctx, func(a membership.Answer) { f.inbox.post(func() { f.told(s, a) }) })
		})
	}
}

// told takes a source's answer in.
func (f *Fleet) told(s *source, a membership.Answer) {
	if f.ctx.Err() != nil {
		return
	}
	s.answered, s.err = true, a.Err
	if a.Err != nil {
		f.log.Warn("nodes cannot all be listed; those that answer stay", "source", s, "listed", len(a.Nodes), "err", a.Err)
	} else {
		f.log.Info("nodes listed", "source", s, "nodes", len(a.Nodes))
	}
	if len(a.Nodes) > 0 {
		s.nodes = slices.Sorted(slices.Values(a.Nodes))
		f.admit(s, a.ServerName)
	}
	f.checkOpen()
}

// admit enters the nodes that are new. If none of a source's addresses can be dialled at all, Open fails.
func (f *Fleet) admit(s *source, serverName string) {
	refused, known := 0, map[string]bool{}
	for _, m := range f.members {
		known[m.node.Addr()] = true
	}
	for _, addr := range s.nodes {
		if known[addr] {
			continue
		}
		n, err := f.options.dial(addr, serverName)
		if err != nil {
			f.log.Warn("a listed node is passed over", "source", s, "node", addr, "err", err)
			refused, s.err = refused+1, err
			continue
		}
		f.enter(&member{fleet: f, node: n, hint: true})
	}
	if refused == len(s.nodes) && len(f.members) == 0 {
		f.failed(s.err)
	}
}

// prune lets go of nodes that no source lists and that do not answer.
func (f *Fleet) prune() {
	if len(f.sources) == 0 {
		return
	}
	working := slices.ContainsFunc(f.members, (*member).answers)
	f.members = slices.DeleteFunc(f.members, func(m *member) bool {
		if !m.hint || m.answers() || f.listed(m.node.Addr()) || m.came && !working {
			return false
		}
		f.log.Info("node removed", "node", m.node.Addr())
		m.end()
		return true
	})
	f.relist()
}

// answers reports whether a node has a stream that speaks.
func (m *member) answers() bool { return m.session != nil && !m.session.silence.on }

func (f *Fleet) listed(addr string) bool {
	return slices.ContainsFunc(f.sources, func(s *source) bool {
		_, found := slices.BinarySearch(s.nodes, addr)
		return found
	})
}

// expects reports whether a source has not answered yet.
func (f *Fleet) expects() bool {
	return slices.ContainsFunc(f.sources, func(s *source) bool { return !s.answered })
}

// sourceErrors are what keeps sources from telling of nodes.
func (f *Fleet) sourceErrors() []NodeError {
	var errs []NodeError
	for _, s := range f.sources {
		if s.err != nil || len(s.nodes) == 0 {
			errs = append(errs, NodeError{s.String(), Connecting, s.err})
		}
	}
	return errs
}

// dial makes a node of an address; its certificate is made out to serverName, if that is set and the options have no other.
func (o *Options) dial(addr, serverName string) (node.Node, error) {
	if o.Dial != nil {
		return o.Dial(addr)
	}
	return node.Dial(addr, o.Dialing.WithServerName(serverName))
}
