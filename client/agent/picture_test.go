package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent/lasthop"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Views of any sizes and last hops come to their places whole, in batches of any count, and so does what is beside
// them.
func TestViewsSettle(t *testing.T) {
	table := make([]byte, 3*256*4)
	for i := range 3 * 256 {
		binary.LittleEndian.PutUint32(table[4*i:], uint32(i%256)*3+uint32(i/256))
	}
	all := []*lasthop.Hop{nil, {DType: "float32", Table: base64.StdEncoding.EncodeToString(table), Layout: "hwc"}, {DType: "uint8", Layout: "chw"}}
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		info, hops := &pb.OpenResponse{}, lasthop.Hops{}
		for view := range 1 + r.IntN(3) {
			name := fmt.Sprintf("image.%d", view)
			info.Fields = append(info.Fields, &pb.Field{Name: name, Dtype: "uint8", Shape: []uint64{1 + r.Uint64N(6), 1 + r.Uint64N(6), 3}})
			hops[name] = all[r.IntN(len(all))]
		}
		info.Fields = append(info.Fields, &pb.Field{Name: "label", Dtype: "int64"}, &pb.Field{Name: "index", Dtype: "int64"})
		most := 1 + r.IntN(5)
		settleViews(t, r, info, hops, most, 1+r.IntN(most))
	}
}

func settleViews(t *testing.T, r *rand.Rand, info *pb.OpenResponse, hops lasthop.Hops, most, count int) {
	t.Helper()
	stride := batch.AlignUp(newLayout(lasthop.FinalFields(info.Fields, hops), most).bytes)
	s, err := mapSlots(memory(t, stride), 1, stride, most, info.Fields, hops)
	if err != nil {
		t.Fatal(err)
	}
	defer s.endUse()
	b, err := newDelivery(want{id: 1, count: uint32(count)}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer s.endUse()
	header, sources, at := &pb.Header{}, map[string][]byte{}, 0
	for _, f := range info.Fields {
		n := count * batch.ElementSize(f.Dtype)
		for _, d := range f.Shape {
			n *= int(d)
		}
		header.Fields = append(header.Fields, &pb.Field{Name: f.Name, Dtype: f.Dtype, Shape: append([]uint64{uint64(count)}, f.Shape...), Offset: uint64(at)})
		source := make([]byte, n)
		for i := range source {
			source[i] = byte(r.Uint32())
		}
		copy(b.wire[at:], source)
		sources[f.Name] = source
		at = batch.AlignUp(at + n)
	}
	if _, err := b.placeBatch(client.Result{Header: header, Data: b.wire[:at]}); err != nil {
		t.Fatal(err)
	}
	for name, source := range sources {
		expected := source
		if hop := hops[name]; hop != nil {
			p := pictureOf(t, info, name, hop)
			n := len(source) / count
			expected = make([]byte, count*p.ResultBytes())
			for i := range count {
				p.WriteImage(expected[i*p.ResultBytes():][:p.ResultBytes()], source[i*n:(i+1)*n])
			}
		}
		if got := b.slot[s.offsetOf(name):][:len(expected)]; !bytes.Equal(got, expected) {
			t.Fatalf("%v, %d of %d samples: %s differs", info.Fields, count, most, name)
		}
	}
}

// pictureOf is the only picture with a last hop among the fields.
func pictureOf(t *testing.T, info *pb.OpenResponse, name string, hop *lasthop.Hop) lasthop.Picture {
	t.Helper()
	all, err := lasthop.NewPictures(info.Fields, func(string) int { return 0 }, lasthop.Hops{name: hop})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(p lasthop.Picture) bool { return p.Name == name })
	return all[i]
}
