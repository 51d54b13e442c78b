package node

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/client/node/internal/streamcopy"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// fragment cuts b at random places, as HTTP/2 frames do.
func fragment(b []byte, r *rand.Rand) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > 0 {
		n := 1 + r.IntN(min(len(b), 16<<10))
		if r.IntN(4) == 0 {
			n = 1 + r.IntN(min(len(b), 8))
		}
		s = append(s, mem.SliceBuffer(b[:n]))
		b = b[n:]
	}
	return s
}

func randomResponse(r *rand.Rand) *pb.FetchResponse {
	m := &pb.FetchResponse{Id: r.Uint64() >> r.UintN(64)}
	switch r.IntN(4) {
	case 0:
		m.Failure = &pb.Failure{Code: int32(r.IntN(17)), Message: "wrong", Reason: pb.Reason(r.IntN(16))}
	case 1:
		m.Notice = &pb.Notice{Wants: r.Uint32(), Queued: r.Float64()}
	default:
		m.Offset, m.Size = r.Uint64()>>r.UintN(64), r.Uint64()>>r.UintN(64)
		m.Data = randomBytes(r, r.IntN(1<<r.UintN(19)))
	}
	if r.IntN(2) == 0 {
		m.Header = &pb.Header{Crc32C: r.Uint32(), CoreSeconds: r.Float64()}
		for range r.IntN(4) {
			f := &pb.Field{Name: "image", Dtype: "uint8", Shape: []uint64{r.Uint64(), 224, 0, 3}}
			for range r.IntN(2) * r.IntN(5000) { // sometimes longer than what is searched for the data
				f.RaggedOffsets = append(f.RaggedOffsets, r.Uint64())
			}
			m.Header.Fields = append(m.Header.Fields, f)
		}
	}
	return m
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// received is what a responseReader made of one message.
type received struct {
	message *pb.FetchResponse
	data    []byte
	crc     uint32
	fast    bool // the data was not copied before
}

func receive(t testing.TB, wire mem.BufferSlice, offset int) (got received, err error) {
	t.Helper()
	in := &responseReader{}
	in.handle = func(m *pb.FetchResponse, p payload) error {
		got.message = proto.Clone(m).(*pb.FetchResponse)
		room := make([]byte, offset+p.bytes+1)
		got.crc = p.copyTo(room[offset:offset+p.bytes], 0)
		got.data = room[offset : offset+p.bytes]
		got.fast = p.skip > 0
		if room[offset+p.bytes] != 0 || !bytes.Equal(room[:offset], make([]byte, offset)) {
			t.Error("wrote beside its place")
		}
		return nil
	}
	err = newCodec().Unmarshal(wire, in)
	return got, err
}

func TestCodecReceivesAnyFragments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fast := 0
	for range 3000 {
		want := randomResponse(r)
		wire, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := receive(t, fragment(wire, r), r.IntN(3))
		if err != nil {
			t.Fatal(err)
		}
		if got.fast {
			fast++
		}
		check(t, want, got)
	}
	if fast < 500 {
		t.Errorf("only %d messages took the fast way", fast)
	}
}

func check(t *testing.T, want *pb.FetchResponse, got received) {
	t.Helper()
	data := want.Data
	bare := proto.Clone(want).(*pb.FetchResponse)
	bare.Data = nil
	if !proto.Equal(bare, got.message) {
		t.Fatalf("got %v, want %v", got.message, bare)
	}
	if !bytes.Equal(data, got.data) {
		t.Fatalf("%d bytes of data differ", len(data))
	}
	if c := crc32.Checksum(data, streamcopy.Castagnoli); c != got.crc {
		t.Fatalf("checksum %08x, want %08x", got.crc, c)
	}
}

// What any encoder may legally write: fields in another order, twice, or unknown ones.
func TestCodecReceivesUnusualMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	data := randomBytes(r, 50_000)
	bare := &pb.FetchResponse{Id: 7, Offset: 64, Size: 1 << 20, Header: &pb.Header{Crc32C: 5}}
	head, err := proto.Marshal(bare)
	if err != nil {
		t.Fatal(err)
	}
	field := protowire.AppendBytes(protowire.AppendTag(nil, pb.DataField, protowire.BytesType), data)
	old := protowire.AppendBytes(protowire.AppendTag(nil, pb.DataField, protowire.BytesType), []byte("superseded"))
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	for name, parts := range map[string][][]byte{
		"data first":          {field, head},
		"data in the middle":  {head, field, head},
		"data twice":          {head, old, field},
		"unknown field":       {unknown, head, field},
		"unknown field last":  {head, field, unknown},
		"only data":           {field},
		"nothing":             {},
		"empty data":          {head, protowire.AppendBytes(protowire.AppendTag(nil, pb.DataField, protowire.BytesType), nil)},
		"long way of a short": {{0x08, 0x87, 0x80, 0x00}, field},
	} {
		t.Run(name, func(t *testing.T) {
			wire := bytes.Join(parts, nil)
			want := &pb.FetchResponse{}
			if err := proto.Unmarshal(wire, want); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				got, err := receive(t, fragment(wire, r), r.IntN(5))
				if err != nil {
					t.Fatal(err)
				}
				check(t, want, got)
			}
		})
	}
}

func TestCodecLeavesOtherMessagesAlone(t *testing.T) {
	c := newCodec()
	want := &pb.OpenResponse{Plan: "{}", Samples: 7}
	wire, err := c.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &pb.OpenResponse{}
	if err := c.Unmarshal(wire, got); err != nil || !proto.Equal(want, got) {
		t.Fatalf("got %v, %v", got, err)
	}
}

// FuzzCodec: any bytes give what proto.Unmarshal makes of them, or an error where it gives one.
func FuzzCodec(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		wire, err := proto.Marshal(randomResponse(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire[:min(len(wire), 2000)], uint64(1))
	}
	f.Fuzz(func(t *testing.T, wire []byte, seed uint64) {
		want := &pb.FetchResponse{}
		wantErr := proto.Unmarshal(wire, want)
		got, err := receive(t, fragment(wire, rand.New(rand.NewPCG(seed, 0))), 1)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("error %v, proto.Unmarshal's %v", err, wantErr)
		}
		if err == nil {
			check(t, want, got)
		}
	})
}
