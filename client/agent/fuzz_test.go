package agent

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

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
		{Errors: []*pb.SampleError{{Key: "\x01", Offset: 77, Substitute: 1 << 63, Substituted: true}}},
	} {
		wire, err := proto.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, uint16(512), false)
		f.Add(wire, uint16(0), true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, data uint16, converted bool) {
		h := &pb.Header{}
		if proto.Unmarshal(wire, h) != nil {
			return
		}
		info := &pb.OpenResponse{Fields: []*pb.Field{
			{Name: "image", Dtype: "uint8", Shape: []uint64{testSide, testSide, 3}}, {Name: "label", Dtype: "int64"}, {Name: "index", Dtype: "int64"},
		}}
		hop := &LastHop{}
		if converted {
			hop = &LastHop{DType: "uint8", Layout: "chw"}
		}
		const stride = 1 << 10
		s, err := mapSlots(memory(t, 2*stride), 2, stride, count, info.Fields, LastHops{"image": hop})
		if err != nil {
			t.Fatal(err)
		}
		defer s.drop()
		b, err := newBatch(want{id: 1, count: count, slot: 0}, info, s)
		if err != nil {
			t.Fatal(err)
		}
		defer s.drop()
		_, _ = b.settle(client.Result{Header: h, Data: b.wire[:min(int(data), len(b.wire))], Node: "fuzz"})
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
		if proto.Unmarshal(wire, r) != nil || client.CheckOpened(r) != nil {
			return
		}
		for _, hop := range []*LastHop{{}, {DType: "float32", Layout: "chw"}} {
			if l := place(finalFields(r.Fields, LastHops{"image": hop}), 1<<12); l.bytes < 0 {
				t.Errorf("%d bytes", l.bytes)
			}
		}
	})
}
