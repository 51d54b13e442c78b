package node

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client/node/internal/streamcopy"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// codec is gRPC's standard codec, but a FetchResponse that is received into a *responseReader has its data copied once
// only: from the transport's frames to its place in the batch. The bytes on the wire are an ordinary protobuf message.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Name is that of the standard codec: the content type stays the normal one.
func (codec) Name() string { return grpcproto.Name }

// responseReader takes the responses of one stream, one at a time.
type responseReader struct {
	// handle gets each response without its data, and the data. Both are valid until it returns; sub-messages may be
	// kept. An error ends the stream.
	handle func(*pb.FetchResponse, payload) error

	message pb.FetchResponse
	scratch [headBytes]byte
}

// headBytes is how much of a message is searched for its data. The first piece of a batch of many samples of differing
// sizes has a longer header; it takes the slow way.
const headBytes = 4 << 10

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*responseReader)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if head, p, ok := in.splitData(data); ok {
		if err := proto.Unmarshal(head, &in.message); err != nil {
			return err
		}
		return in.handle(&in.message, p)
	}
	if err := proto.Unmarshal(data.Materialize(), &in.message); err != nil {
		return err
	}
	p := payload{bytes: len(in.message.Data), frames: mem.BufferSlice{mem.SliceBuffer(in.message.Data)}}
	in.message.Data = nil
	return in.handle(&in.message, p)
}

// splitData cuts a message into what comes before its data, and the data. It fails on everything unusual: data that is
// not the last field, a long header, damage.
func (in *responseReader) splitData(data mem.BufferSlice) (head []byte, p payload, ok bool) {
	total := data.Len()
	front := in.frontOf(data, total)
	for at := 0; at < len(front); {
		number, kind, n := protowire.ConsumeTag(front[at:])
		if n < 0 {
			return nil, payload{}, false
		}
		if number == pb.DataField && kind == protowire.BytesType {
			size, k := protowire.ConsumeVarint(front[at+n:])
			if start := at + n + k; k > 0 && start <= total && size == uint64(total-start) {
				return front[:at], payload{frames: data, skip: start, bytes: total - start}, true
			}
			return nil, payload{}, false
		}
		k := protowire.ConsumeFieldValue(number, kind, front[at+n:])
		if k < 0 {
			return nil, payload{}, false
		}
		at += n + k
	}
	return front, payload{}, len(front) == total
}

// frontOf is the first headBytes of a message, or all of it, in one slice.
func (in *responseReader) frontOf(data mem.BufferSlice, total int) []byte {
	if len(data) > 0 {
		if first := data[0].ReadOnlyData(); len(first) >= min(total, headBytes) {
			return first
		}
	}
	return in.scratch[:data.CopyTo(in.scratch[:])]
}

// payload is the data of a response, still in the transport's frames.
type payload struct {
	frames      mem.BufferSlice
	skip, bytes int
}

// copyTo writes the data to dst, which has room for it, and carries the checksum of the batch on.
func (p payload) copyTo(dst []byte, crc uint32) uint32 {
	defer streamcopy.Fence()
	skip := p.skip
	for _, f := range p.frames {
		b := f.ReadOnlyData()
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		b = b[skip:]
		crc = streamcopy.Copy(dst, b, crc)
		dst, skip = dst[len(b):], 0
	}
	return crc
}
