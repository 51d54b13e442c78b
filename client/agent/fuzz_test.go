package agent

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// batchesOf are kinds of batches: pictures of one size, pictures that differ in size, views with rectangles to erase
// and masks.
var batchesOf = [][]*pb.Field{
	{{Name: "image", Dtype: "uint8", Shape: []uint64{testSide, testSide, 3}}, {Name: "label", Dtype: "int64"}, {Name: "index", Dtype: "int64"}},
	{{Name: "image", Dtype: "uint8", Shape: []uint64{0, 0, 3}}, {Name: "erase", Dtype: "int64", Shape: []uint64{1, 6}}, {Name: "index", Dtype: "int64"}},
	{
		{Name: "image.0", Dtype: "uint8", Shape: []uint64{testSide, testSide, 3}}, {Name: "image.1", Dtype: "uint8", Shape: []uint64{1, 2, 3}},
		{Name: "erase.1", Dtype: "int64", Shape: []uint64{1, 6}}, {Name: "mask", Dtype: "uint8", Shape: []uint64{testSide, testSide}}, {Name: "index", Dtype: "int64"},
	},
}

// FuzzAnswers: whatever a node says of a batch, its bytes go nowhere but into the slot that the want lent.
func FuzzAnswers(f *testing.F) {
	const count = 4
	image := &pb.Field{Name: "image", Dtype: "uint8", Shape: []uint64{count, testSide, testSide, 3}}
	label := &pb.Field{Name: "label", Dtype: "int64", Shape: []uint64{count}, Offset: 128}
	ragged := &pb.Field{Name: "image", Dtype: "uint8", Shape: []uint64{count, 0, 0, 3}, RaggedOffsets: []uint64{0, 3, 6, 9, 12}, RaggedShapes: []uint32{1, 1, 3, 1, 1, 3, 1, 1, 3, 1, 1, 3}}
	for _, h := range []*pb.Header{
		{Fields: []*pb.Field{image, label}}, {Fields: []*pb.Field{ragged}}, {},
		{Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{count, 1 << 31, 1 << 31, 1 << 31}}}},
		{Fields: []*pb.Field{{Name: "index", Dtype: "int64", Shape: []uint64{count}, Offset: math.MaxUint64 - 3}}},
		{Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{count}, RaggedOffsets: []uint64{math.MaxUint64}}}},
		{Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{count, 0}, RaggedOffsets: []uint64{0, 1 << 63, 3, 4, 5}, RaggedShapes: make([]uint32, 12)}}},
		{Fields: []*pb.Field{ragged, {Name: "erase", Dtype: "int64", Shape: []uint64{count, 1, 6}, Offset: 64}}},
		{Fields: []*pb.Field{
			{Name: "image.1", Dtype: "uint8", Shape: []uint64{count, 1, 2, 3}}, {Name: "mask", Dtype: "uint8", Shape: []uint64{count, testSide, testSide}, Offset: 64},
			{Name: "erase.1", Dtype: "int64", Shape: []uint64{count, 1, 6}, Offset: 128},
		}},
		{Errors: []*pb.SampleError{{Key: []byte{1}, Offset: 77, Substitute: 1 << 63, Substituted: true}}},
	} {
		wire, err := proto.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		for kind := range uint8(6) {
			f.Add(wire, uint16(kind%2)*512, kind)
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte, data uint16, kind uint8) {
		h := &pb.Header{}
		if proto.Unmarshal(wire, h) != nil {
			return
		}
		info := &pb.OpenResponse{Fields: batchesOf[kind/2%3]}
		hop := &lasthop.Hop{}
		if kind%2 == 1 {
			hop = &lasthop.Hop{DType: "uint8", Layout: "chw", Erase: "AAAA"}
		}
		const stride = 1 << 10
		s, err := mapSlots(memory(t, 2*stride), 2, stride, count, info.Fields, lasthop.Hops{"image": hop, "image.1": hop})
		if err != nil {
			t.Fatal(err)
		}
		defer s.endUse()
		b, err := newDelivery(want{id: 1, count: count, slot: 0}, s)
		if err != nil {
			t.Fatal(err)
		}
		defer s.endUse()
		_, _ = b.placeBatch(client.Result{Header: h, Data: b.wire[:min(int(data), len(b.wire))], Node: "fuzz"})
		for i, x := range s.memory[stride:] {
			if x != 0 {
				t.Fatalf("byte %d of the slot behind was written", i)
			}
		}
	})
}

// FuzzFields: a node's description of samples is refused, or slots can be laid out for it.
func FuzzFields(f *testing.F) {
	for _, r := range []*pb.OpenResponse{
		{Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{224, 224, 3}}, {Name: "label", Dtype: "int64"}}},
		{Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{1 << 40, 1 << 40, 1 << 40}}}},
		{Fields: []*pb.Field{{Name: "image", Dtype: "?", Shape: []uint64{0, 0, 3}}}},
	} {
		wire, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &pb.OpenResponse{}
		if proto.Unmarshal(wire, r) != nil || node.CheckOpened(r) != nil {
			return
		}
		for _, hop := range []*lasthop.Hop{{}, {DType: "float32", Layout: "chw"}} {
			if l := newLayout(lasthop.FinalFields(r.Fields, lasthop.Hops{"image": hop}), 1<<12); l.bytes < 0 {
				t.Errorf("%d bytes", l.bytes)
			}
		}
	})
}
