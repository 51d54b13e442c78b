package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
	"github.com/feedwater-io/feedwater/server/thumbnail"
)

// Pictures of a batch are shown to whoever may watch the node and read the job's data, and to nobody else.
func TestThumbnails(t *testing.T) {
	t.Run("root", func(t *testing.T) { testThumbnails(t, false) })
	t.Run("fingerprint", func(t *testing.T) { testThumbnails(t, true) })
}

// testThumbnails has the job name its data by its root, or by its fingerprint alone.
func testThumbnails(t *testing.T, byFingerprint bool) {
	g := guard(t, &servertest.Engine{}, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}, Watch: true}, "team-b": {Roots: []string{"other"}, Watch: true},
	}}})
	s := shown{token: "Bearer " + secretA}
	feed := pb.NewFeedClient(g.dial(s))
	opened, err := feed.Open(s.context(t), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos"}}`})
	if err != nil {
		t.Fatal(err)
	}
	if byFingerprint {
		plan := fmt.Sprintf(`{"source": {"path": "of/the/trainer", "fingerprint": %q}}`, opened.Fingerprint)
		if opened, err = feed.Open(s.context(t), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}); err != nil {
			t.Fatal(err)
		}
	}
	lookAt := func(job, token string) string {
		told := ""
		h := g.Watchers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			set, missing := g.Thumbnails(r.Context(), job, opened.PlanHash)
			told = missing
			if missing == "" {
				told = fmt.Sprintf("%d of epoch %d for rank %d", len(set.Pictures), set.Epoch, set.Rank)
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		return told
	}
	look := func(token string) string { return lookAt("rn50", token) }
	stream, err := feed.Fetch(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	tr := &trainer{t, stream, func() {}}
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: opened.Plan, Job: "rn50"}}})
	batches := func(id uint64) { // the second one is sent after pictures of the first were taken, if they were
		for i := range uint64(2) {
			tr.want(id+i, rangeOf(3, 16*i, 16))
			tr.mustNext()
		}
	}
	tr.want(100, rangeOf(3, 64, 16)) // so that the stream has begun
	tr.mustNext()
	if told := look(secretB); !strings.Contains(told, "may not read") {
		t.Errorf("who may not read the data is told %q", told)
	}
	for i := range thumbnail.MaxJobs { // these take nobody's place
		if told := lookAt(fmt.Sprint("invented", i), secretA); !strings.Contains(told, "no stream") {
			t.Errorf("of a job that nobody has it tells %q", told)
		}
	}
	batches(1)
	if told := look(secretA); !strings.Contains(told, "no batch since") {
		t.Errorf("%q before anybody looked", told)
	}
	batches(3)
	if told := look(secretA); told != "8 of epoch 3 for rank 0" {
		t.Errorf("%q", told)
	}
	if told := look(secretB); !strings.Contains(told, "may not read") {
		t.Errorf("who may not read the data is told %q", told)
	}
	if told := look(""); told != "" {
		t.Errorf("a stranger is told %q", told)
	}
	if _, missing := g.Thumbnails(t.Context(), "rn50", opened.PlanHash); !strings.Contains(missing, "no identity") {
		t.Errorf("past Watchers there is %q", missing)
	}
}

// What a node pays for each batch while nobody looks.
func BenchmarkNobodyLooks(b *testing.B) {
	var s server.Server
	for b.Loop() {
		server.ThumbnailDue(&s, time.Now())
	}
}
