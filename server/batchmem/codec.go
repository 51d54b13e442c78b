package batchmem

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// codec is gRPC's standard codec, but the data of a *Piece is sent by reference. The bytes on the wire are those of
// proto.Marshal.
type codec struct{ encoding.CodecV2 }

// NewCodec returns the codec that a gRPC server of nodes is made with.
func NewCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Name is that of the standard codec: the content type stays the normal one.
func (codec) Name() string { return grpcproto.Name }

// Piece is a FetchResponse whose data lies in a slot.
type Piece struct {
	// Head is the message without data.
	Head *pb.FetchResponse
	// Data is not empty. Marshal takes over one reference to it, also when it fails.
	Data mem.Buffer
}

// FrontBytes is what a message with data has on the wire before its data, when all of it has total bytes: gRPC's
// prefix, the other fields, tag and length.
func FrontBytes(head *pb.FetchResponse, total int) int {
	const prefix = 5
	n := prefix + proto.Size(head) + protowire.SizeTag(pb.DataField)
	return n + protowire.SizeVarint(uint64(total-n))
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*Piece)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(p.Head) + protowire.SizeTag(pb.DataField) + protowire.SizeVarint(uint64(p.Data.Len()))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(make([]byte, 0, size), p.Head)
	if err != nil {
		p.Data.Free()
		return nil, err
	}
	b = protowire.AppendTag(b, pb.DataField, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(p.Data.Len()))
	return mem.BufferSlice{mem.SliceBuffer(b), p.Data}, nil
}
