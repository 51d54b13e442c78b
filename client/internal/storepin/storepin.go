// Package storepin pins what lies in the stores that a job's data is read from.
//
// A fingerprint does not tell whether an object in a bucket was replaced by one of the same size. Its version does, and is
// another one in each copy of the data. So nodes that read one store have to agree on the versions that lie there, with
// each other and with the state of a job that goes on; those of different stores are not compared.
package storepin

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Pins are the stores that a job's data lies in, and the versions there, by digests of both. Its methods may be called by
// many goroutines at once.
type Pins struct {
	mu   sync.Mutex
	pins map[string]pin
}

// pin are the versions in a store.
type pin struct {
	versions string
	node     string // that told them first; empty: the job's state did
}

// New begins with what a state says.
func New(state map[string]string) *Pins {
	p := &Pins{pins: map[string]pin{}}
	for store, versions := range state {
		p.pins[store] = pin{versions: versions}
	}
	return p
}

// Add pins what a node reads that takes part. Where that lies in a store that is new to the job, and has other versions
// than all that were pinned, differs tells what has those: copies of the data, as a rule, but maybe the same store by another
// name, with objects that were replaced.
func (p *Pins) Add(addr string, r *pb.OpenResponse) (differs string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.pins[r.GetStore()]; known || r.GetStore() == "" {
		return ""
	}
	for _, store := range slices.Sorted(maps.Keys(p.pins)) {
		one := p.pins[store]
		if one.versions == r.GetVersions() {
			differs = ""
			break
		}
		differs = cmp.Or(differs, one.node, "the job's state")
	}
	p.pins[r.GetStore()] = pin{r.GetVersions(), addr}
	return differs
}

// Check returns the error of a node that reads other versions of a store than the job; nil of others.
func (p *Pins) Check(addr string, r *pb.OpenResponse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pinned, known := p.pins[r.GetStore()]
	const replaced = "other versions of objects, with the same names and sizes, than "
	switch {
	case !known || r.GetStore() == "" || pinned.versions == r.GetVersions():
		return nil
	case pinned.node == addr:
		return &node.DataError{Differs: true, Message: replaced + "those that the job began with: they were replaced in the bucket since"}
	case pinned.node == "":
		return &node.DataError{Differs: true, Message: replaced + "the job's state was saved with: they were replaced in the bucket. Put the old ones " +
			"back, or go on with those that are there now by load_state_dict(state, strict=False), in Go from a state without Stores"}
	}
	return &node.DataError{Differs: true, Message: replaced + pinned.node + " has in the same bucket, with which the job began: they were replaced since. " +
		"Put the old ones back, or go on from a saved state with those that are there now, by load_state_dict(state, strict=False)"}
}

// Count is how many stores are pinned.
func (p *Pins) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pins)
}

// All are the versions by their stores.
func (p *Pins) All() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]string{}
	for store, one := range p.pins {
		all[store] = one.versions
	}
	return all
}
