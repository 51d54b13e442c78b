package server_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// A root whose storage does not answer is refused as this node's trouble, and told of; another one is served. It comes
// back by itself.
func TestSickRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := bulkhead.New(bulkhead.Options{Deadline: 20 * time.Millisecond, Patience: time.Millisecond, ProbeEvery: time.Hour})
		p, err := pipeline.Open(pipeline.Options{Workers: 1, Storage: roots})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan bool, 2)
		hung, well := pictureFolder(t), pictureFolder(t)
		s := server.New(server.Options{
			Engine: server.NewEngine(p, dataset.Options{CacheDir: t.TempDir()}), Roots: map[string]string{"x": hung, "y": well},
			OnRoot: func(root string, answers bool) {
				if root != "x" {
					t.Errorf("%s is told of", root)
				}
				told <- answers
			},
		})
		defer roots.Close()
		defer p.Close()
		defer s.Close()
		again := make(chan struct{})
		stuck := func(func()) (struct{}, error) { <-again; return struct{}{}, nil }
		_, err = bulkhead.Do(context.Background(), roots.Of(hung), "list", stuck, nil)
		if e := (*bulkhead.HungError)(nil); !errors.As(err, &e) || e.Root != "x" || e.Op != "list" {
			t.Fatal(err)
		}
		if <-told {
			t.Error("it answers")
		}
		_, err = openRoot(t, s, "x")
		if code := status.Code(err); code != codes.Unavailable || !retried(err) {
			t.Errorf("%v: trainers are to ask elsewhere, and here again", err)
		}
		if _, err := openRoot(t, s, "y"); err != nil {
			t.Errorf("the other root: %v", err)
		}
		page := scrapeOf(s)
		for _, line := range []string{`feedwater_node_root_sick{root="x"} 1`, `feedwater_node_root_sick{root="y"} 0`, `feedwater_node_root_timeouts_total{root="x"} 1`} {
			if !strings.Contains(page, line+"\n") {
				t.Errorf("no %s", line)
			}
		}
		close(again)
		if !<-told {
			t.Error("it does not answer")
		}
		if _, err := openRoot(t, s, "x"); err != nil {
			t.Errorf("the root that is back: %v", err)
		}
	})
}

// pictureFolder is a folder of one class with one file.
func pictureFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "a"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "a", "1.jpg"), []byte("picture"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func openRoot(t *testing.T, s *server.Server, root string) (*pb.OpenResponse, error) {
	t.Helper()
	return s.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "` + root + `"}, "fields": ["label"]}`})
}

// retried reports whether an error says when to ask again.
func retried(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			return true
		}
	}
	return false
}

func scrapeOf(c prometheus.Collector) string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
