package server_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/revision"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// first is a build that has all units of this one in revision 1.
func first() revision.Set {
	s := revision.Build()
	for unit := range s {
		s[unit] = 1
	}
	return s
}

// pinnedWith are the revisions of that build, with some of a plan and of codecs changed; 0 takes one out.
func pinnedWith(change map[string]uint32) *pb.Revisions {
	r := &pb.Revisions{Plan: first().Of(revision.Plan{}), Codecs: pipeline.CodecUnits(first()), Build: "v1 (aaaa)"}
	for unit, n := range change {
		for _, part := range []map[string]uint32{r.Plan, r.Codecs} {
			if _, there := part[unit]; there || unit == "op/New" {
				part[unit] = n
			}
		}
	}
	maps.DeleteFunc(r.Plan, func(_ string, n uint32) bool { return n == 0 })
	return r
}

// revisionOf is a unit's in that build.
func revisionOf(unit string) uint32 { return first()[unit] }

func TestOpenTellsRevisions(t *testing.T) {
	n := newNode(t, &servertest.Engine{Build: first()}, server.Options{Version: "1", Build: "1 (aaaa)"})
	r, err := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos"}, "transforms": [
		{"op": "RandomApply", "transforms": [{"op": "JPEG", "quality": 50}]}]}`})
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"order", "draws", "batch", "files", "op/RandomApply", "op/JPEG", "kernel/jpeg", "kernel/resize"} {
		if n := r.Revisions.Plan[unit]; n == 0 || n != revisionOf(unit) {
			t.Errorf("the plan's %s is %d, that build has %d", unit, n, revisionOf(unit))
		}
	}
	for _, format := range []string{"bmp", "gif", "jpeg", "png", "webp"} {
		if n := r.Revisions.Codecs["codec/"+format]; n == 0 || n != revisionOf("codec/"+format) {
			t.Errorf("%s is %d, that build has %d", format, n, revisionOf("codec/"+format))
		}
	}
	if _, there := r.Revisions.Plan["op/Resize"]; there || r.Revisions.Build != "1 (aaaa)" || r.Protocol != 2 {
		t.Errorf("%v", r)
	}
}

// What a plan uses is compared when it is bound, by whichever call.
func TestOtherRevisionsAreRefused(t *testing.T) {
	n := newNode(t, &servertest.Engine{Build: first()}, server.Options{Build: "v2 (bbbb)"})
	for name, c := range map[string]struct {
		change map[string]uint32
		words  string
	}{
		"other":                    {map[string]uint32{"draws": 7}, fmt.Sprintf("the plan takes draws: this node has revision %d (build v2 (bbbb)), the job's is revision 7 (build v1 (aaaa))", revisionOf("draws"))},
		"the job lacks it":         {map[string]uint32{"files": 0}, "the job's is none of it (build v1 (aaaa))"},
		"the node lacks it":        {map[string]uint32{"op/New": 1}, "the plan takes op/New: this node has none of it (build v2 (bbbb))"},
		"codecs are not looked at": {map[string]uint32{"codec/png": 7}, ""},
	} {
		pinned := pinnedWith(c.change)
		_, opened := n.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan, Revisions: pinned})
		_, replayed := n.Replay(t.Context(), &pb.ReplayRequest{Plan: plan, Name: rangeOf(0, 0, 1), Revisions: pinned})
		j, started := n.Job(t.Context(), &pb.Start{Plan: plan, Revisions: pinned})
		if started == nil {
			j.Close()
		}
		for _, err := range []error{opened, replayed, started} {
			if c.words == "" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			s := status.Convert(err)
			info, _ := s.Details()[0].(*errdetails.ErrorInfo)
			if s.Code() != codes.FailedPrecondition || info.GetReason() != "REASON_REVISION" || !strings.Contains(s.Message(), c.words) ||
				info.Metadata["pinned_build"] != "v1 (aaaa)" || info.Metadata["build"] != "v2 (bbbb)" || info.Metadata["unit"] == "" {
				t.Errorf("%s: %v %v", name, err, info)
			}
		}
	}
}

// A want fails if it meets a file of another codec, also where another job had the batch made; others of the stream are
// made.
func TestOtherCodecs(t *testing.T) {
	e := &servertest.Engine{Build: first(), Format: func(i uint64) string { return []string{"jpeg", "png"}[i/10%2] }}
	n := newNode(t, e, server.Options{ShareBytes: 1 << 20, Build: "v2 (bbbb)"})
	own := n.started()
	own.want(1, rangeOf(0, 10, 4))
	if r := own.mustNext(); r.failure != nil {
		t.Fatal(r.failure)
	}
	tr := n.fetch(n.conn())
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: n.open(plan).Plan, Revisions: pinnedWith(map[string]uint32{"codec/png": 7})}}})
	tr.want(1, rangeOf(0, 10, 4))
	f := tr.mustNext().failure
	if f.GetReason() != pb.Reason_REASON_REVISION || f.Metadata["unit"] != "codec/png" || f.Metadata["pinned"] != "7" || f.Metadata["found"] != fmt.Sprint(revisionOf("codec/png")) ||
		!strings.Contains(f.Message, fmt.Sprintf("10 (index 10) takes codec/png: this node has revision %d (build v2 (bbbb)), the job's is revision 7 (build v1 (aaaa))", revisionOf("codec/png"))) {
		t.Errorf("%v", f)
	}
	tr.want(2, rangeOf(0, 0, 4))
	if r := tr.mustNext(); r.failure != nil {
		t.Errorf("a JPEG: %v", r.failure)
	}
}

// Trainers of before revisions are not served, in a sentence that names both.
func TestTrainersThatPinNothing(t *testing.T) {
	n := newNode(t, &servertest.Engine{Build: first()}, server.Options{Build: "v2 (bbbb)"})
	for build, spoken := range map[string]uint32{"": 0, "v1 (aaaa)": 1} {
		_, err := n.Open(t.Context(), &pb.OpenRequest{Plan: plan, Protocol: spoken, Trainer: &pb.Trainer{Build: build}})
		who := "build " + build
		if build == "" {
			who = "a build that does not tell its name"
		}
		if want := "the trainer (" + who + ") speaks protocol 1, and this node (build v2 (bbbb)) serves none before 2"; !strings.Contains(status.Convert(err).Message(), want) {
			t.Errorf("%v", err)
		}
	}
}
