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
	for _, s := range f.roster.sources {
		f.job.keepers.Go(func() {
			s.Watch(f.job.ctx, func(a membership.Answer) { f.job.inbox.post(func() { f.told(s, a) }) })
		})
	}
}

// told takes a source's answer in.
func (f *Fleet) told(s *source, a membership.Answer) {
	if f.job.ctx.Err() != nil {
		return
	}
	s.answered, s.err = true, a.Err
	if a.Err != nil {
		f.job.log.Warn("nodes cannot all be listed; those that answer stay", "source", s, "listed", len(a.Nodes), "err", a.Err)
	} else {
		f.job.log.Info("nodes listed", "source", s, "nodes", len(a.Nodes))
	}
	if len(a.Nodes) > 0 {
		s.nodes = slices.Sorted(slices.Values(a.Nodes))
		if err := f.roster.admit(s, a.ServerName); err != nil {
			f.opening.failed(err)
		}
	}
	f.opening.checkOpen()
}

// admit enters the nodes that are new. It returns an error if there is no node, since none of a source's addresses can be dialled at all.
func (r *roster) admit(s *source, serverName string) error {
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
		r.enter(r.newMember(n, true))
	}
	if refused == len(s.nodes) && len(r.members) == 0 {
		return s.err
	}
	return nil
}

// prune lets go of nodes that no source lists and that do not answer.
func (r *roster) prune() {
	if len(r.sources) == 0 {
		return
	}
	working := slices.ContainsFunc(r.members, (*member).answers)
	r.members = slices.DeleteFunc(r.members, func(m *member) bool {
		if !m.hint || m.answers() || r.listed(m.node.Addr()) || m.came && !working {
			return false
		}
		r.job.log.Info("node removed", "node", m.node.Addr())
		m.end()
		return true
	})
	r.relist()
}

// answers reports whether a node has a stream that speaks.
func (m *member) answers() bool { return m.session != nil && !m.session.silence.on }

func (r *roster) listed(addr string) bool {
	return slices.ContainsFunc(r.sources, func(s *source) bool {
		_, found := slices.BinarySearch(s.nodes, addr)
		return found
	})
}

// expects reports whether a source has not answered yet.
func (r *roster) expects() bool {
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

// dial makes a node of an address; its certificate is made out to serverName, if that is set and the options have no other.
func (o *Options) dial(addr, serverName string) (node.Node, error) {
	if o.Dial != nil {
		return o.Dial(addr)
	}
	return node.Dial(addr, o.Dialing.WithServerName(serverName))
}
