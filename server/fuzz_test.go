package server_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// FuzzRequests sends any sequence of requests on a stream. The node must answer or end the stream, take no more memory
// than it may, and give all of it back. The input is FetchRequests, each behind its length; a Start is sent before if
// begin is set.
func FuzzRequests(f *testing.F) {
	n := newNode(f, &servertest.Engine{Delay: func(*batch.Name) time.Duration { return 0 }}, server.Options{NodeBytes: 1 << 20, StreamBytes: 1 << 19, StreamWants: 8})
	text := n.open(plan).Plan
	start := &pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, PieceBytes: 1}}}
	for _, requests := range [][]*pb.FetchRequest{
		{wantOf(1, rangeOf(0, 0, 8)), cancelOf(1), wantOf(2, rangeOf(1, 5, 3))},
		{start, wantOf(1, rangeOf(0, ^uint64(0), 1<<31))},
		{wantOf(1, rangeOf(0, 0, 1)), wantOf(1, rangeOf(0, 0, 1))},
		{wantOf(5, &pb.Name{Samples: &pb.Name_List{List: &pb.List{Indices: []uint64{1, 1 << 40}, Repeats: []uint32{0, 7}}}})},
		{{}},
	} {
		var b []byte
		for _, r := range requests {
			wire, err := proto.Marshal(r)
			if err != nil {
				f.Fatal(err)
			}
			b = protowire.AppendBytes(b, wire)
		}
		f.Add(b, true)
		f.Add(b, false)
	}
	c := n.conn()
	f.Fuzz(func(t *testing.T, b []byte, begin bool) {
		tr := fetch(t, c)
		defer tr.cancel()
		if begin {
			tr.send(start)
		}
		for len(b) > 0 {
			wire, k := protowire.ConsumeBytes(b)
			if k < 0 {
				break
			}
			b = b[k:]
			r := &pb.FetchRequest{}
			if proto.Unmarshal(wire, r) != nil {
				continue
			}
			if tr.stream.Send(r) != nil {
				break
			}
		}
		if err := tr.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := tr.next(); err != nil {
				break
			}
		}
		if used, _ := n.Memory(); used > 1<<20 {
			t.Errorf("%d bytes of slots", used)
		}
		until(t, "slots are still lent", func() bool { _, lent := n.Memory(); return lent == 0 })
	})
}
