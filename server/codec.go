package server

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// codec is gRPC's standard codec, but the data of a *piece is sent by reference. The bytes on the wire are those of proto.Marshal.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Name is that of the standard codec: the content type stays the normal one.
func (codec) Name() string { return grpcproto.Name }

// piece is a FetchResponse whose data lies in a slot.
type piece struct {
	// head is the message without data.
	head *pb.FetchResponse
	// data is not empty. Marshal takes over one reference to it, also when it fails.
	data mem.Buffer
}

// dataField is the number of FetchResponse.data, the last of the message.
const dataField protowire.Number = 15

// frontBytes is what a message with data has on the wire before its data, when all of it has total bytes: gRPC's prefix, the other
// fields, tag and length.
func frontBytes(head *pb.FetchResponse, total int) int {
	const prefix = 5
	n := prefix + proto.Size(head) + protowire.SizeTag(dataField)
	return n + protowire.SizeVarint(uint64(total-n))
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*piece)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(p.head) + protowire.SizeTag(dataField) + protowire.SizeVarint(uint64(p.data.Len()))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, 0, size), p.head)
	if err != nil {
		p.data.Free()
		return nil, err
	}
	b = protowire.AppendTag(b, dataField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(p.data.Len()))
	return mem.BufferSlice{mem.SliceBuffer(b), p.data}, nil
}
