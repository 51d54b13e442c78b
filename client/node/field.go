package node

import (
	"math"
	"math/bits"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// FieldBytes is the size of a field of a batch; false if its description makes no sense.
func FieldBytes(f *pb.Field) (uint64, bool) {
	if n := len(f.RaggedOffsets); n > 0 {
		return f.RaggedOffsets[n-1], isRaggedValid(f)
	}
	return shapeProduct(elementBytes(f.Dtype), f.Shape)
}

func isRaggedValid(f *pb.Field) bool {
	samples := len(f.RaggedOffsets) - 1
	if len(f.Shape) == 0 || len(f.RaggedShapes) != samples*(len(f.Shape)-1) || f.RaggedOffsets[0] != 0 {
		return false
	}
	for i := range samples {
		if f.RaggedOffsets[i] > f.RaggedOffsets[i+1] {
			return false
		}
	}
	return true
}

func shapeProduct(n uint64, shape []uint64) (uint64, bool) {
	for _, d := range shape {
		high, low := bits.Mul64(n, d)
		if high != 0 || low > math.MaxInt64 {
			return 0, false
		}
		n = low
	}
	return n, true
}

func elementBytes(dtype string) uint64 { return uint64(batch.ElementSize(dtype)) }

// BatchBytes is what a batch of count samples takes, without fields whose samples differ in size. fields are those of
// an OpenResponse.
func BatchBytes(fields []*pb.Field, count int) int {
	total := uint64(0)
	for _, f := range fields {
		n, _ := shapeProduct(elementBytes(f.Dtype)*uint64(count), f.Shape)
		total += batch.AlignUp(n)
	}
	return int(min(total, maxBatchBytes))
}

// CountSamples is the number of samples that a name stands for.
func CountSamples(n *pb.Name) int {
	if l := n.GetList(); l != nil {
		return len(l.Indices)
	}
	return int(n.GetRange().GetCount())
}

// maxBatchBytes bounds what a node can make a trainer allocate for one batch.
const maxBatchBytes = 1 << 36
