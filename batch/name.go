package batch

import (
	"fmt"
	"math"
)

// Ref is one sample of a batch: an index into the snapshot, and the repeat that keeps its draws apart from those of the
// same sample elsewhere in the epoch.
type Ref struct {
	Index  uint64
	Repeat uint32
}

// Name names a batch within a plan: either Count positions of the epoch's order from Position on, or the samples of
// List. The same name always gives the same bytes.
type Name struct {
	Epoch    uint32
	Position uint64
	Count    int
	// List, if not nil, names the samples themselves; Position and Count are then ignored.
	List []Ref
	// Policy is what CTAugment draws by; see transform.Chain.CheckPolicy. Not to be changed until the want is done.
	Policy []byte
}

// Len is the number of samples.
func (n *Name) Len() int {
	if n.List != nil {
		return len(n.List)
	}
	return n.Count
}

// Part names the samples from the one at place from up to the one before place to.
func (n *Name) Part(from, to int) Name {
	if n.List != nil {
		return Name{Epoch: n.Epoch, List: n.List[from:to], Policy: n.Policy}
	}
	return Name{Epoch: n.Epoch, Position: n.Position + uint64(from), Count: to - from, Policy: n.Policy}
}

// MaxSamples is the largest number of samples in one batch.
const MaxSamples = 1 << 20

// CheckCount returns a *PlanError where no batch has that many samples.
func CheckCount(samples int) error {
	if samples < 1 || samples > MaxSamples {
		return &PlanError{Field: "name", Message: fmt.Sprintf("a batch of %d samples", samples), Nearest: fmt.Sprintf("1 to %d", MaxSamples)}
	}
	return nil
}

// Check returns a *PlanError if the name is of no batch of a data set with that many samples.
func (n *Name) Check(samples uint64) error {
	if err := CheckCount(n.Len()); err != nil {
		return err
	}
	k := uint64(n.Len())
	if n.List == nil && (n.Position > math.MaxUint64-k || (n.Position+k-1)/samples > math.MaxUint32) {
		return &PlanError{Field: "name.position", Message: fmt.Sprintf("%d is out of range", n.Position)}
	}
	for i, r := range n.List {
		if r.Index >= samples {
			return &PlanError{Field: fmt.Sprintf("name.list[%d]", i), Message: fmt.Sprintf("index %d of a data set of %d samples", r.Index, samples)}
		}
	}
	return nil
}
