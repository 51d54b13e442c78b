package batchmem

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Any gRPC client must be able to read pieces, so they are, byte for byte, what the standard codec writes.
func TestPieceIsAnOrdinaryMessage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		want := &pb.FetchResponse{Id: r.Uint64() >> r.UintN(64), Offset: r.Uint64() >> r.UintN(64), Size: r.Uint64() >> r.UintN(64)}
		if r.IntN(2) == 0 {
			want.Header = &pb.Header{Crc32C: r.Uint32(), Fields: []*pb.Field{{Name: "image", Dtype: "uint8", Shape: []uint64{256, 224, 224, 3}}}}
		}
		data := make([]byte, 1+r.IntN(1<<r.UintN(18)))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		got, err := NewCodec().Marshal(&Piece{Head: want, Data: mem.SliceBuffer(data)})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got); n != 2 || &got[1].ReadOnlyData()[0] != &data[0] {
			t.Fatalf("%d buffers; the data was copied", n)
		}
		want.Data = data
		standard, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Materialize(), standard) {
			t.Fatalf("the bytes of %v differ from proto.Marshal's", want)
		}
	}
}

// A message that cannot be written must not keep its slot.
func TestPieceThatFailsIsFreed(t *testing.T) {
	m := &Memory{Limit: 1 << 20}
	q := NewQuota(m, 1<<20)
	batch := q.TakeSlot(100_000, 0).LeaseBytes(100_000)
	head := &pb.FetchResponse{Failure: &pb.Failure{Message: "\xff"}} // not UTF-8
	if _, err := NewCodec().Marshal(&Piece{Head: head, Data: batch.Slice(0, 10)}); err == nil {
		t.Fatal("no error")
	}
	batch.Free()
	if n := q.CountLent(); n != 0 {
		t.Errorf("%d bytes are still lent", n)
	}
}

func TestCodecLeavesOtherMessagesAlone(t *testing.T) {
	want := &pb.FetchRequest{Request: &pb.FetchRequest_Cancel{Cancel: &pb.Cancel{Id: 3}}}
	wire, err := NewCodec().Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &pb.FetchRequest{}
	if err := NewCodec().Unmarshal(wire, got); err != nil || !proto.Equal(want, got) {
		t.Fatalf("got %v, %v", got, err)
	}
}
