package comparison

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/filename"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Difference is the first place where a node's batches are not the first node's.
type Difference struct {
	// Node that differs.
	Node string `json:"node"`
	// Batch counts from 0. Its name is Epoch and Position.
	Batch    int    `json:"batch"`
	Epoch    uint32 `json:"epoch"`
	Position uint64 `json:"position"`
	// Sample is the place in the batch; Index and Key are those of the data set.
	Sample int           `json:"sample"`
	Index  uint64        `json:"index"`
	Key    filename.Name `json:"key"`
	// Field that differs, in Bytes of its Of bytes, the first of them at Offset: Ours on the first node, Theirs there.
	// Empty: What says it all.
	Field  string `json:"field,omitempty"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	Of     int    `json:"of"`
	Ours   byte   `json:"ours"`
	Theirs byte   `json:"theirs"`
	// What differs that is no field's bytes.
	What string `json:"what,omitempty"`
}

func (d *Difference) String() string {
	place := fmt.Sprintf("batch %d (epoch %d, position %d) on %s: sample %d, index %d, %s: ", d.Batch, d.Epoch, d.Position, d.Node, d.Sample, d.Index, d.Key)
	if d.Field == "" {
		return place + d.What
	}
	return place + fmt.Sprintf("field %s: %d of %d bytes differ, the first at offset %d: %d there, %d on the first node", d.Field, d.Bytes, d.Of, d.Offset, d.Theirs, d.Ours)
}

// differenceOf returns nil for results that are equal.
func differenceOf(a, b *client.Result) *Difference {
	if a.Err != nil || b.Err != nil {
		return compareErrors(a.Err, b.Err)
	}
	if bytes.Equal(a.Data, b.Data) && slices.EqualFunc(a.Header.Fields, b.Header.Fields, sameShape) {
		return nil
	}
	for sample := range countOf(a.Header) {
		for _, f := range a.Header.Fields {
			i := slices.IndexFunc(b.Header.Fields, func(g *pb.Field) bool { return g.Name == f.Name })
			if i < 0 {
				return &Difference{What: fmt.Sprintf("field %s is missing there", f.Name)}
			}
			if d := fieldDifference(f, sampleOf(a, f, sample), sampleOf(b, b.Header.Fields[i], sample)); d != nil {
				d.Sample = sample
				return d
			}
		}
	}
	return &Difference{What: "the fields are equal, but lie elsewhere, or what lies between them differs"}
}

// compareErrors compares errors about samples that do not decode. Their wording may differ between versions.
func compareErrors(a, b error) *Difference {
	var ours, theirs *node.SampleError
	hasOurs, hasTheirs := errors.As(a, &ours), errors.As(b, &theirs)
	switch {
	case hasOurs && hasTheirs && ours.Offset == theirs.Offset && ours.Index == theirs.Index && ours.Op == theirs.Op:
		return nil
	case hasTheirs && !hasOurs:
		return &Difference{Sample: int(theirs.Offset), Index: theirs.Index, Key: filename.Name(theirs.Key), What: fmt.Sprintf("does not decode there (%s: %s), does on the first node", theirs.Op, theirs.Cause)}
	case !hasTheirs:
		return &Difference{Sample: int(ours.Offset), Index: ours.Index, Key: filename.Name(ours.Key), What: fmt.Sprintf("decodes there, does not on the first node (%s: %s)", ours.Op, ours.Cause)}
	}
	return &Difference{Sample: int(ours.Offset), Index: ours.Index, Key: filename.Name(ours.Key),
		What: fmt.Sprintf("is refused by %s on the first node; there %s is, by %s", ours.Op, filename.Name(theirs.Key), theirs.Op)}
}

func sameShape(f, g *pb.Field) bool {
	return f.Name == g.Name && f.Offset == g.Offset && slices.Equal(f.Shape, g.Shape) && slices.Equal(f.RaggedShapes, g.RaggedShapes)
}

func countOf(h *pb.Header) int {
	if len(h.Fields) == 0 || len(h.Fields[0].Shape) == 0 {
		return 0
	}
	return int(h.Fields[0].Shape[0])
}

// sampleOf is a sample's part of a field. The client has checked that it lies within the batch.
func sampleOf(r *client.Result, f *pb.Field, sample int) []byte {
	if len(f.RaggedOffsets) > 0 {
		return r.Data[f.Offset+f.RaggedOffsets[sample] : f.Offset+f.RaggedOffsets[sample+1]]
	}
	all, _ := node.FieldBytes(f)
	each := all / f.Shape[0]
	return r.Data[f.Offset+uint64(sample)*each:][:each]
}

func fieldDifference(f *pb.Field, ours, theirs []byte) *Difference {
	if len(ours) != len(theirs) {
		return &Difference{What: fmt.Sprintf("field %s has %d bytes there, %d on the first node", f.Name, len(theirs), len(ours))}
	}
	d := &Difference{Field: f.Name, Of: len(ours)}
	for i := range ours {
		if ours[i] == theirs[i] {
			continue
		}
		if d.Bytes == 0 {
			d.Offset, d.Ours, d.Theirs = i, ours[i], theirs[i]
		}
		d.Bytes++
	}
	if d.Bytes == 0 {
		return nil
	}
	return d
}
