package feedwaterv1_test

import (
	"testing"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// DataField is what feedwater.proto says, and no field of the message comes behind it.
func TestDataField(t *testing.T) {
	fields := (&pb.FetchResponse{}).ProtoReflect().Descriptor().Fields()
	if f := fields.ByName("data"); f == nil || f.Number() != pb.DataField {
		t.Errorf("data is %v, DataField %d", f, pb.DataField)
	}
	for i := range fields.Len() {
		if f := fields.Get(i); f.Number() > pb.DataField {
			t.Errorf("%s has number %d, behind the data", f.Name(), f.Number())
		}
	}
}
