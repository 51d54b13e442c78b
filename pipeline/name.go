package pipeline

import (
	"fmt"
	"math"
	"slices"
)

// Ref is one sample of a batch: an index into the snapshot, and the repeat that keeps its draws apart from those of the same
// sample elsewhere in the epoch.
type Ref struct {
	Index  uint64
	Repeat uint32
}

// Name names a batch within a plan: either Count positions of the epoch's order from Position on, or the samples of List.
// The same name always gives the same bytes.
type Name struct {
	Epoch    uint32
	Position uint64
	Count    int
	// List, if not nil, names the samples themselves; Position and Count are then ignored.
	List []Ref
	// Policy is what CTAugment draws by; see augment.Chain.CheckPolicy. Not to be changed until the want is done.
	Policy []byte
}

// Len is the number of samples.
func (n *Name) Len() int {
	if n.List != nil {
		return len(n.List)
	}
	return n.Count
}

// MaxBatch is the largest number of samples in one batch.
const MaxBatch = 1 << 20

func (n *Name) check(samples uint64) error {
	switch k := n.Len(); {
	case k < 1 || k > MaxBatch:
		return &PlanError{Field: "name", Message: fmt.Sprintf("a batch of %d samples", k), Nearest: fmt.Sprintf("1 to %d", MaxBatch)}
	case n.List == nil && (n.Position > math.MaxUint64-uint64(k) || (n.Position+uint64(k)-1)/samples > math.MaxUint32):
		return &PlanError{Field: "name.position", Message: fmt.Sprintf("%d is out of range", n.Position)}
	}
	for i, r := range n.List {
		if r.Index >= samples {
			return &PlanError{Field: fmt.Sprintf("name.list[%d]", i), Message: fmt.Sprintf("index %d of a data set of %d samples", r.Index, samples)}
		}
	}
	return nil
}

// Field is one array of a batch.
type Field struct {
	Name string
	// DType is numpy's name of the element type.
	DType string
	// Shape is that of one sample. A dimension of 0 differs from sample to sample.
	Shape []int
	// Offset is where the array begins in the batch; a multiple of fieldAlign. Set by Layout only.
	Offset int
	// Bytes is the array's size. Set by Layout only, and 0 where samples differ in size.
	Bytes int
}

const fieldAlign = 64

func align(n int) int { return (n + fieldAlign - 1) &^ (fieldAlign - 1) }

func elementBytes(dtype string) int {
	if dtype == "int64" {
		return 8
	}
	return 1
}

// place lays fields out behind each other for a batch of count samples. A field whose samples differ in size comes last and counts
// nothing.
func place(fields []Field, count int) (placed []Field, bytes int) {
	placed = slices.Clone(fields)
	var last *Field
	for i := range placed {
		f := &placed[i]
		f.Bytes = count * elementBytes(f.DType)
		for _, d := range f.Shape {
			f.Bytes *= d
		}
		if f.Bytes == 0 {
			last = f
			continue
		}
		f.Offset = bytes
		bytes = align(bytes + f.Bytes)
	}
	if last != nil {
		last.Offset = bytes
	}
	return placed, bytes
}

// offsetOf is where the named field lies, -1 if there is none.
func offsetOf(fields []Field, name string) int {
	for _, f := range fields {
		if f.Name == name {
			return f.Offset
		}
	}
	return -1
}
