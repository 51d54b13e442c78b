package agent

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// A batch that arrived from a second node beside its slot ends as one that arrived in the slot, whatever the first node
// left there.
func TestBatchThatLandedBesideItsSlot(t *testing.T) {
	const count = 4
	values := make([]byte, 3*256*4)
	for i := range values {
		values[i] = byte(i * i)
	}
	table := base64.StdEncoding.EncodeToString(values)
	for name, hop := range map[string]*lasthop.Hop{
		"as it comes": {}, "planes": {DType: "uint8", Layout: "chw"}, "floats": {DType: "float32", Layout: "chw", Table: table},
	} {
		t.Run(name, func(t *testing.T) {
			pixels := uint64(testSide * testSide * 3)
			info := &pb.OpenResponse{Fields: []*pb.Field{
				{Name: "image", Dtype: "uint8", Shape: []uint64{testSide, testSide, 3}}, {Name: "label", Dtype: "int64"},
			}}
			h := &pb.Header{Fields: []*pb.Field{
				{Name: "image", Dtype: "uint8", Shape: []uint64{count, testSide, testSide, 3}},
				{Name: "label", Dtype: "int64", Shape: []uint64{count}, Offset: uint64(batch.AlignUp(count * int(pixels)))},
			}}
			wire := make([]byte, int(h.Fields[1].Offset)+8*count)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range wire {
				wire[i] = byte(r.Uint32())
			}
			hops := lasthop.Hops{"image": hop}
			l := newLayout(lasthop.FinalFields(info.Fields, hops), count)
			placed := func(beside bool) []byte {
				stride := batch.AlignUp(l.bytes + len(wire))
				s, err := mapSlots(memory(t, stride), 1, stride, count, info.Fields, hops)
				if err != nil {
					t.Fatal(err)
				}
				defer s.endUse()
				b, err := newDelivery(want{id: 1, count: count}, s)
				if err != nil {
					t.Fatal(err)
				}
				defer s.endUse()
				dst := b.wire
				if beside {
					for i := range b.slot {
						b.slot[i] = 0xdb // of the first node
					}
					dst = b.lendSpare(len(b.wire))
				}
				result := client.Result{Header: h, Data: dst[:copy(dst, wire)]}
				if beside != b.arrivedInSpare(result) {
					t.Error("it is not known where the batch is")
				}
				if _, err := b.placeBatch(result); err != nil {
					t.Fatal(err)
				}
				var all []byte
				for _, f := range l.fields {
					all = append(all, b.slot[f.Offset:f.Offset+f.Size(count)]...)
				}
				return all
			}
			if !bytes.Equal(placed(false), placed(true)) {
				t.Error("other bytes")
			}
		})
	}
}

func TestLandings(t *testing.T) {
	var l spareBuffers
	a, b := l.lendBuffer(10), l.lendBuffer(20)
	if len(a) != 10 || len(b) != 20 || l.lendBuffer(1) != nil {
		t.Error("there is not enough for two, or there is for three")
	}
	l.returnBuffer(nil)
	l.returnBuffer(b)
	if c := l.lendBuffer(15); len(c) != 15 || &c[0] != &b[0] {
		t.Error("memory is not used again")
	}
	l.returnBuffer(a)
	if c := l.lendBuffer(30); len(c) != 30 {
		t.Errorf("%d bytes of 30", len(c))
	}
}
