package server_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// Whoever may open a plan hears how far its scan is, also one that names the data by its fingerprint; nobody hears of
// roots that he may not read.
func TestWhoHearsOfScans(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	e := &servertest.Engine{ScanFiles: 17, Scanning: func(_ context.Context, _ string) error {
		begun <- struct{}{}
		<-over
		return nil
	}}
	g := guard(t, e, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}, Watch: true}, "team-b": {Roots: []string{"other"}},
	}}})
	a, b := shown{token: "Bearer " + secretA}, shown{token: "Bearer " + secretB}
	opened := make(chan error, 1)
	go func() { opened <- g.tryOpen(a, "photos") }()
	<-begun
	byFingerprint := `{"source": {"fingerprint": "` + strings.Repeat("0", 64) + `"}}`
	for name, c := range map[string]struct {
		shown
		plan  string
		scans int
		code  codes.Code
	}{
		"the one who opens it":      {a, plan, 1, codes.OK},
		"by fingerprint":            {a, byFingerprint, 1, codes.OK},
		"of another team":           {b, plan, 0, codes.PermissionDenied},
		"of another team, by it":    {b, byFingerprint, 0, codes.OK},
		"nobody":                    {shown{}, plan, 0, codes.Unauthenticated},
		"a plan that is none":       {a, "{", 0, codes.InvalidArgument},
		"a root that is not served": {a, `{"source": {"root": "none"}}`, 0, codes.PermissionDenied},
	} {
		r, err := pb.NewFeedClient(g.dial(c.shown)).Progress(c.context(t), &pb.ProgressRequest{Plan: c.plan})
		if status.Code(err) != c.code || len(r.GetScans()) != c.scans {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if c.scans == 1 && (r.Scans[0].Folder != "photos" || r.Scans[0].Files != 17) {
			t.Errorf("%s: %v", name, r)
		}
	}
	if scans := g.scans(a); len(scans) != 1 || scans[0].Files != 17 {
		t.Errorf("a watcher hears %v", scans)
	}
	close(over)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if r, err := pb.NewFeedClient(g.dial(a)).Progress(a.context(t), &pb.ProgressRequest{Plan: plan}); err != nil || len(r.Scans) > 0 {
		t.Errorf("when it is over: %v, %v", r, err)
	}
}

// scans are what a watcher hears of.
func (g *guarded) scans(s shown) []*pb.Scan {
	ctx, cancel := context.WithCancel(s.context(g.t))
	defer cancel()
	stream, err := pb.NewFeedClient(g.dial(s)).Watch(ctx, &pb.WatchRequest{})
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil {
		g.t.Fatal(err)
	}
	return r.Nodes[0].Scans
}

// Preload takes the list before anybody opens it.
func TestPreload(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	if err := n.Preload(t.Context(), pipeline.Source{Root: "photos"}); err != nil || n.engine.Open() != 1 {
		t.Errorf("%v, %d snapshots", err, n.engine.Open())
	}
}
