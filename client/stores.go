package client

import (
	"sync"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// A fingerprint does not tell whether an object in a bucket was replaced by one of the same size. Its version does, and is
// another one in each copy of the data. So nodes that read one store have to agree on the versions that lie there, with
// each other and with the state of a job that goes on; those of different stores are not compared.

// storePins are the stores that a job's data lies in, and the versions there, by digests of both.
type storePins struct {
	mu   sync.Mutex
	pins map[string]storePin
}

// storePin are the versions in a store.
type storePin struct {
	versions string
	node     string // that told them first; empty: the job's state did
}

// newStorePins begins with what a state says.
func newStorePins(state map[string]string) *storePins {
	p := &storePins{pins: map[string]storePin{}}
	for store, versions := range state {
		p.pins[store] = storePin{versions: versions}
	}
	return p
}

// add pins what a node reads that takes part.
func (p *storePins) add(addr string, r *pb.OpenResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.pins[r.GetStore()]; !known && r.GetStore() != "" {
		p.pins[r.GetStore()] = storePin{r.GetVersions(), addr}
	}
}

// check returns the error of a node that reads other versions of a store than the job; nil of others.
func (p *storePins) check(addr string, r *pb.OpenResponse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pin, known := p.pins[r.GetStore()]
	const replaced = "other versions of objects, with the same names and sizes, than "
	switch {
	case !known || r.GetStore() == "" || pin.versions == r.GetVersions():
		return nil
	case pin.node == addr:
		return &node.DataError{Message: replaced + "those that the job began with: they were replaced in the bucket since"}
	case pin.node == "":
		return &node.DataError{Message: replaced + "the job's state was saved with: they were replaced in the bucket. Put the old ones " +
			"back, or go on with those that are there now by load_state_dict(state, strict=False), in Go from a state without Stores"}
	}
	return &node.DataError{Message: replaced + pin.node + " has in the same bucket, with which the job began: they were replaced since. " +
		"Put the old ones back, or go on from a saved state with those that are there now, by load_state_dict(state, strict=False)"}
}

// all are the versions by their stores.
func (p *storePins) all() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for store, pin := range p.pins {
		all[store] = pin.versions
	}
	return all
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
