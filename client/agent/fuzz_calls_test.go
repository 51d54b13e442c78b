package agent

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// blankNode makes batches of any fields, all zeros.
type blankNode struct {
	*fakeNode
	fields []*pb.Field
}

func (n *blankNode) Open(ctx context.Context, r *pb.OpenRequest) (*pb.OpenResponse, error) {
	info, err := n.fakeNode.Open(ctx, r)
	info.Fields = n.fields
	return info, err
}

func (n *blankNode) Fetch(context.Context, *pb.Start, func(*pb.Notice)) (node.Stream, error) {
	return &blankStream{&fakeStream{node: n.fakeNode, ended: make(chan struct{}), cancels: map[*node.Attempt]chan struct{}{}}, n}, nil
}

type blankStream struct {
	*fakeStream
	of *blankNode
}

func (s *blankStream) Send(a *node.Attempt) {
	count := uint64(a.Name.GetRange().GetCount()) + uint64(len(a.Name.GetList().GetIndices()))
	h, at := &pb.Header{}, uint64(0)
	for _, f := range s.of.fields {
		g := &pb.Field{Name: f.Name, Dtype: f.Dtype, Shape: append([]uint64{count}, f.Shape...), Offset: at}
		if len(f.Shape) > 0 && f.Shape[0] == 0 {
			g.RaggedOffsets = []uint64{0}
			for i := range count {
				g.RaggedOffsets = append(g.RaggedOffsets, g.RaggedOffsets[i]+3*(i%3))
				g.RaggedShapes = append(g.RaggedShapes, 1, uint32(i%3), 3)
			}
		}
		n, _ := node.FieldBytes(g)
		h.Fields, at = append(h.Fields, g), uint64(batch.AlignUp(int(at+n)))
	}
	if at > uint64(len(a.Dst)) {
		if a.Grow == nil {
			a.Done(node.Answer{Err: &node.RoomError{Bytes: at}})
			return
		}
		a.Dst = a.Grow(int(at))
	}
	clear(a.Dst[:at])
	a.Done(node.Answer{Header: h, Data: a.Dst[:at]})
}

// ask makes a call and takes whatever is answered, to it and to wants.
func (c *trainer) ask(method string, params any, files ...*os.File) {
	c.seq++
	packet := binary.LittleEndian.AppendUint32([]byte{kindCall}, c.seq)
	packet = append(packet, mustJSON(map[string]any{"method": method, "params": params})...)
	c.send(c.loader, packet, append([]*os.File{memory(c.t, 0)}, files...)...)
	for a := c.receive(); a[0] != kindAnswer || binary.LittleEndian.Uint32(a[1:]) != c.seq; a = c.receive() {
		if a[0] == kindDone || a[0] == kindFailed || a[0] == kindCancelled {
			continue
		}
		c.t.Fatalf("%s is answered by %q", method, a)
	}
}

// FuzzCalls: whatever a trainer says of slots, and whatever it wants then, each want has one answer at most, and what
// lies behind the slots stays.
func FuzzCalls(f *testing.F) {
	for kind := range uint8(3) {
		f.Add(kind, `{"count": 4, "stride": 4096, "batch": 5, "last_hop": null}`, wantPacket(want{id: 1, count: 5, slot: 3}, want{id: 2, count: 1, slot: 0})[1:])
		f.Add(kind, `{"count": 4, "stride": 4096, "batch": 5, "last_hop": {"image": {"layout": "chw", "erase": "AAAA"}, "image.1": {"crops": 2, "layout": "chw"}}}`, wantPacket(want{id: 1, count: 4, slot: 1, flags: flagListed})[1:])
		f.Add(kind, `{"count": 1, "stride": 64, "batch": 4294967296}`, wantPacket(want{id: 1, count: 1 << 31, slot: 1 << 31})[1:])
	}
	f.Fuzz(func(t *testing.T, kind uint8, params string, wants []byte) {
		wants = wants[:len(wants)/wantBytes*wantBytes] // other packets end the socket: FuzzPackets has them
		if !json.Valid([]byte(params)) || len(params) > maxPacket/2 || len(wants) == 0 || len(wants) > 16*wantBytes {
			return
		}
		c := start(t, &blankNode{&fakeNode{}, batchesOf[kind%3]})
		c.call("open", map[string]any{"plan": map[string]any{}, "timeout": 60, "start_timeout": 60}, false)
		c.ask("slots", json.RawMessage(params), memory(t, 4*4096))
		c.send(c.loader, append([]byte{kindWants}, wants...))
		c.ask("status", json.RawMessage("{}"))
		_ = c.loader.CloseWrite()
	})
}

// FuzzOpened: what a node says of a job is refused, or can be told to the trainer.
func FuzzOpened(f *testing.F) {
	for _, r := range []*pb.OpenResponse{
		{Fields: batchesOf[2], Ops: []*pb.Op{{Name: "CenterCrop", Place: "node", Arguments: `{"size": [3, 3]}`}}},
		{Fields: batchesOf[0], Ops: []*pb.Op{{Arguments: "{"}, {}}}, {Fields: batchesOf[0], Ops: []*pb.Op{{Arguments: "null"}}},
		{Fields: batchesOf[1], Samples: 1 << 63, Workers: 1 << 31, Classes: []*pb.Class{{Samples: 1 << 63}}},
	} {
		f.Add(marshal(f, r))
	}
	fleet, err := client.New(client.Options{Local: &fakeNode{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &pb.OpenResponse{}
		if proto.Unmarshal(wire, r) != nil || node.CheckOpened(r) != nil {
			return
		}
		var told struct {
			PlanHash *string `json:"plan_hash"`
			Ops      []struct{ Arguments map[string]any }
		}
		if err := json.Unmarshal(mustJSON(newOpenResult(r, fleet)), &told); err != nil || told.PlanHash == nil {
			t.Errorf("%v", err)
		}
	})
}

// FuzzReplies: whatever a node replays can be told to the trainer.
func FuzzReplies(f *testing.F) {
	for _, parameters := range []string{`{"top": 4}`, "", "null", "[]", `{"op": {"a": 1}}`} {
		f.Add(marshal(f, &pb.ReplayResponse{Samples: []*pb.Sample{{Image: []byte{1}, Draws: []*pb.Draw{{Op: "Crop", Parameters: parameters}}}, {Error: &pb.SampleError{}}}}))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := &pb.ReplayResponse{}
		if proto.Unmarshal(wire, r) != nil {
			return
		}
		samples, _ := newSamples(r.Samples)
		var told []struct{ Draws []map[string]any }
		if err := json.Unmarshal(mustJSON(samples), &told); err != nil || len(told) != len(r.Samples) {
			t.Fatalf("%v", err)
		}
		for i, s := range told {
			for k, d := range s.Draws {
				if d["op"] != r.Samples[i].Draws[k].Op {
					t.Errorf("draw %d of sample %d is %v", k, i, d)
				}
			}
		}
	})
}

func marshal(f *testing.F, m proto.Message) []byte {
	wire, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return wire
}
