package comparison

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// made is a batch of two samples: images of differing sizes, and labels.
func made(pix string, heights [2]uint32, labels string) *client.Result {
	middle := uint64(heights[0])
	image := &pb.Field{
		Name: "image", Dtype: "uint8", Shape: []uint64{2, 0}, RaggedOffsets: []uint64{0, middle, middle + uint64(heights[1])}, RaggedShapes: heights[:],
	}
	label := &pb.Field{Name: "label", Dtype: "uint8", Shape: []uint64{2}, Offset: 64}
	data := make([]byte, 128)
	copy(data, pix)
	copy(data[64:], labels)
	return &client.Result{Header: &pb.Header{Fields: []*pb.Field{image, label}}, Data: data}
}

func TestDifferenceOf(t *testing.T) {
	a := made("abcdef", [2]uint32{2, 4}, "xy")
	if d := differenceOf(a, made("abcdef", [2]uint32{2, 4}, "xy")); d != nil {
		t.Errorf("equal batches: %s", d)
	}
	gap := made("abcdef", [2]uint32{2, 4}, "xy")
	gap.Data[20] = 1
	bare := made("abcdef", [2]uint32{2, 4}, "xy")
	bare.Header.Fields = bare.Header.Fields[:1]
	for _, c := range []struct {
		b    *client.Result
		want Difference
	}{
		{made("abcXeX", [2]uint32{2, 4}, "xy"), Difference{Sample: 1, Field: "image", Offset: 1, Bytes: 2, Of: 4, Ours: 'd', Theirs: 'X'}},
		{made("abcdXf", [2]uint32{2, 4}, "Xy"), Difference{Sample: 0, Field: "label", Offset: 0, Bytes: 1, Of: 1, Ours: 'x', Theirs: 'X'}},
		{made("abcdef", [2]uint32{3, 3}, "xy"), Difference{What: "field image has 3 bytes there, 2 on the first node"}},
		{gap, Difference{What: "the fields are equal, but lie elsewhere, or what lies between them differs"}},
		{bare, Difference{What: "field label is missing there"}},
	} {
		if d := differenceOf(a, c.b); d == nil || *d != c.want {
			t.Errorf("%+v, not %+v", d, c.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	broken := func(offset uint32, op, cause string) *client.Result {
		return &client.Result{Err: &node.SampleError{SampleError: &pb.SampleError{Offset: offset, Index: 40 + uint64(offset), Key: []byte("a.jpg"), Op: op, Cause: cause}}}
	}
	fine := made("abcdef", [2]uint32{2, 4}, "xy")
	if d := differenceOf(broken(1, "decode", "short"), broken(1, "decode", "in other words")); d != nil {
		t.Errorf("the same verdict: %s", d)
	}
	for _, c := range []struct {
		a, b *client.Result
		want string
	}{
		{fine, broken(1, "decode", "short"), "sample 1, index 41, a.jpg: does not decode there (decode: short)"},
		{broken(1, "decode", "short"), fine, "sample 1, index 41, a.jpg: decodes there"},
		{broken(0, "decode", "short"), broken(1, "decode", "short"), "sample 0, index 40, a.jpg: is refused"},
		{broken(1, "Resize", "short"), broken(1, "decode", "short"), "is refused by Resize"},
		{&client.Result{Err: errors.New("any")}, broken(1, "decode", "short"), "does not decode there"},
	} {
		if d := differenceOf(c.a, c.b); d == nil || !strings.Contains(d.String(), c.want) {
			t.Errorf("%s, not %s", d, c.want)
		}
	}
}

func TestRevisionsOfNodes(t *testing.T) {
	info := func(plan, codecs map[string]uint32) *pb.OpenResponse {
		return &pb.OpenResponse{Fingerprint: "f", Revisions: &pb.Revisions{Plan: plan, Codecs: codecs}}
	}
	r := &run{options: Options{Nodes: []string{"a", "b", "c", "d"}}, infos: []*pb.OpenResponse{
		info(map[string]uint32{"order": 1, "op/Resize": 1}, map[string]uint32{"codec/png": 1}),
		info(map[string]uint32{"order": 1, "op/Resize": 2}, map[string]uint32{"codec/png": 1}),
		info(map[string]uint32{"order": 1, "op/Resize": 1}, map[string]uint32{"codec/png": 3}),
		info(map[string]uint32{"order": 1, "op/Resize": 1}, map[string]uint32{"codec/png": 1}),
	}}
	if !r.compareAnswers(t.Context()) || r.result.Equal() {
		t.Errorf("%+v", r.result)
	}
	if a := r.result.Answers; len(a) != 1 || !strings.HasPrefix(a[0], "b has op/Resize of revision 2, not 1: jobs that began on the one leave the other out") {
		t.Errorf("%q", a)
	}
	if c := r.result.Codecs; len(c) != 1 || !strings.HasPrefix(c[0], "c has codec/png of revision 3, not 1") {
		t.Errorf("%q", c)
	}
	if (&Result{Codecs: r.result.Codecs}).Equal() || !(&Result{}).Equal() {
		t.Error("codecs do not count")
	}
}
