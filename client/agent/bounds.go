package agent

import (
	"fmt"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// A node may say anything. What it says of sizes is looked at here before anything is computed from it.

// arrayBytes is what an array of this type and shape takes; false if that is more than any batch has.
func arrayBytes(dtype string, shape []uint64) (int, bool) {
	const most = 1 << 40
	n := uint64(typeBytes(dtype))
	for _, d := range shape {
		if d != 0 && n > most/d {
			return 0, false
		}
		n *= d
	}
	return int(n), true
}

// checkFields refuses descriptions of samples that no batch could have.
func checkFields(fields []*pb.Field) error {
	const maxFields, maxDims, maxDim = 64, 8, 1 << 24
	if len(fields) > maxFields {
		return fmt.Errorf("a node describes %d fields", len(fields))
	}
	for _, f := range fields {
		_, ok := arrayBytes(f.GetDtype(), f.GetShape())
		for _, d := range f.GetShape() {
			ok = ok && d <= maxDim
		}
		if !ok || len(f.GetShape()) > maxDims {
			return fmt.Errorf("a node describes field %q as of shape %v", f.GetName(), f.GetShape()[:min(len(f.GetShape()), maxDims)])
		}
	}
	return nil
}
