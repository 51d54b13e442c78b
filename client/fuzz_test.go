package client_test

import (
	"bytes"
	"context"
	"hash/crc32"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// scripted is a node that says on its first stream, behind three wants, what it was given, and nothing on others.
type scripted struct {
	pb.UnimplementedFeedServer
	says []*pb.FetchResponse
	said atomic.Bool
}

// scriptedFields are those of its job: pictures of one size, masks, a field of differing sizes.
var scriptedFields = []*pb.Field{
	{Name: "image", Dtype: "uint8", Shape: []uint64{2, 2, 3}}, {Name: "mask", Dtype: "uint8", Shape: []uint64{2, 2}},
	{Name: "ragged", Dtype: "uint8", Shape: []uint64{0, 0, 3}},
}

func (s *scripted) Open(_ context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	return &pb.OpenResponse{Plan: r.Plan, PlanHash: "p", Numerics: "n", Fingerprint: "f", Samples: 1000, Workers: 2, Protocol: pb.Protocol, Fields: scriptedFields}, nil
}

func (s *scripted) Fetch(trainer grpc.BidiStreamingServer[pb.FetchRequest, pb.FetchResponse]) error {
	if s.said.Swap(true) {
		<-trainer.Context().Done()
		return nil
	}
	for wants := 0; wants < 3; {
		r, err := trainer.Recv()
		if err != nil {
			return err
		}
		if r.GetWant() != nil {
			wants++
		}
	}
	for _, m := range s.says {
		if err := trainer.Send(m); err != nil {
			return err
		}
	}
	select {
	case <-time.After(time.Second / 2): // the trainer has looked at itself
	case <-trainer.Context().Done():
	}
	return nil
}

// FuzzNode: whatever a node sends, pieces, failures and notices, each want has one answer, which is a batch of the job
// or an error; nothing is written beside its memory; and what the trainer tells of the node are numbers. The input is
// FetchResponses, each behind its length.
func FuzzNode(f *testing.F) {
	for _, said := range scripts() {
		var b []byte
		for _, m := range said {
			wire, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			b = protowire.AppendBytes(b, wire)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var says []*pb.FetchResponse
		for len(b) > 0 {
			wire, k := protowire.ConsumeBytes(b)
			m := &pb.FetchResponse{}
			if k < 0 || proto.Unmarshal(wire, m) != nil {
				break
			}
			says, b = append(says, m), b[k:]
		}
		synctest.Test(t, func(t *testing.T) { hear(t, says) })
	})
}

// hear runs a fleet of one such node.
func hear(t *testing.T, says []*pb.FetchResponse) {
	c := newCluster(t)
	n := &servedNode{
		cluster: c, addr: "scripted", end: func() {}, server: server.New(server.Options{Engine: &servertest.Engine{}}),
		listener: bufconn.Listen(64 << 10), served: make(chan struct{}), grpc: grpc.NewServer(),
	}
	pb.RegisterFeedServer(n.grpc, &scripted{says: says})
	n.listen()
	f := c.open(c.options("scripted"))
	const room, beside = 256, 64
	var answers [3]atomic.Int32
	var memory [3][room + beside]byte
	var heard sync.WaitGroup
	for i := range answers {
		heard.Add(1)
		f.Want(&client.Want{Name: rangeOf(0, uint64(i), 4), Request: batch.Request{Dst: memory[i][:room:room]}, Done: func(r client.Result) {
			if answers[i].Add(1) == 1 {
				heard.Done()
			}
			if r.Err == nil {
				isBatch(t, r)
			}
		}})
	}
	time.Sleep(time.Second / 4)
	for _, s := range f.Status() {
		if !(s.Queued >= 0 && s.SecondsPerSample >= 0) || math.IsInf(s.Queued+s.SecondsPerSample, 0) {
			t.Errorf("status %+v", s)
		}
	}
	if w, due := f.Window(4), f.Due(3); w < 1 || w > 1<<11 || due < 0 || due > time.Hour {
		t.Errorf("a window of %d, due in %s", w, due)
	}
	f.Close()
	heard.Wait()
	for i := range answers {
		if answers[i].Load() != 1 || !bytes.Equal(memory[i][room:], make([]byte, beside)) {
			t.Errorf("want %d: %d answers, %x beside its memory", i, answers[i].Load(), memory[i][room:])
		}
	}
}

// isBatch checks that all fields of the job lie within a batch of four samples.
func isBatch(t *testing.T, r client.Result) {
	for _, f := range scriptedFields {
		g := field(r.Header, f.Name)
		if n, ok := node.FieldBytes(g); !ok || g.Shape[0] != 4 || g.Offset > uint64(len(r.Data)) || n > uint64(len(r.Data))-g.Offset {
			t.Errorf("field %v of %d bytes", g, len(r.Data))
		}
	}
}

// scripts are what nodes say: a batch in two pieces, notices of all kinds, failures.
func scripts() [][]*pb.FetchResponse {
	data := bytes.Repeat([]byte{7}, 140)
	header := &pb.Header{Crc32C: crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)), CoreSeconds: math.NaN(), QueuedSeconds: math.Inf(1), Fields: []*pb.Field{
		{Name: "image", Dtype: "uint8", Shape: []uint64{4, 2, 2, 3}}, {Name: "mask", Dtype: "uint8", Shape: []uint64{4, 2, 2}, Offset: 64},
		{Name: "ragged", Dtype: "uint8", Shape: []uint64{4, 0, 0, 3}, Offset: 128, RaggedOffsets: []uint64{0, 3, 3, 9, 12}, RaggedShapes: []uint32{1, 1, 3, 0, 5, 3, 2, 1, 3, 1, 1, 3}},
	}}
	first, last := &pb.FetchResponse{Id: 1, Size: 140, Header: header, Data: data[:100]}, &pb.FetchResponse{Id: 1, Offset: 100, Size: 140, Data: data[100:]}
	notice := func(x float64) *pb.FetchResponse {
		return &pb.FetchResponse{Notice: &pb.Notice{Wants: 1 << 31, Queued: x, AheadSeconds: x, SampleSeconds: x, Heard: math.MaxUint64, Begun: []uint64{0, 1, 2, 1 << 63}}}
	}
	failure := func(reason pb.Reason, retry *durationpb.Duration) *pb.FetchResponse {
		return &pb.FetchResponse{Id: 2, Failure: &pb.Failure{Code: 14, Reason: reason, RetryAfter: retry, Message: "no"}}
	}
	return [][]*pb.FetchResponse{
		{first, notice(0.01), last}, {first, first}, {last}, {notice(math.NaN()), notice(math.Inf(1)), notice(-1), notice(math.MaxFloat64), first, last},
		{failure(pb.Reason_REASON_BUSY, durationpb.New(math.MinInt64)), failure(pb.Reason_REASON_BUSY, durationpb.New(math.MaxInt64))},
		{failure(pb.Reason_REASON_DATA_CHANGED, nil)}, {failure(pb.Reason_REASON_DRAINING, nil), {Notice: &pb.Notice{Draining: true}}, first, last},
		{{Id: 3, Failure: &pb.Failure{Code: 15, Reason: pb.Reason_REASON_SAMPLE, SampleError: &pb.SampleError{Key: []byte{1}}}}},
		{{Id: 2, Size: math.MaxUint64, Header: header, Data: []byte{1}}},
	}
}
