package page_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/history"
	"github.com/feedwater-io/feedwater/watch/page"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

func source(name string) *watch.Source {
	var b pulse.Registry
	b.OpenSession(name, "plan", time.Now())
	return watch.New(watch.Options{Kind: "node", Registry: &b, Nodes: func(time.Time) func(time.Time) []*pb.NodeStatus {
		return func(time.Time) []*pb.NodeStatus { return []*pb.NodeStatus{{State: "ready", Cores: 4}} }
	}})
}

func handlerOf(s *watch.Source) http.Handler {
	return page.Handler(page.Options{Overview: page.NewLive(s).Overview, History: history.New()})
}

func get(t *testing.T, h http.Handler, path string) (int, http.Header, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Result().Header, string(body)
}

func TestJSON(t *testing.T) {
	h := handlerOf(source("rn50"))
	code, header, text := get(t, h, "/watch.json")
	var p struct {
		Jobs  []struct{ Job, Verdict string }
		Nodes []struct{ Addr, State string }
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil || code != http.StatusOK || header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v %s", code, err, text)
	}
	if len(p.Jobs) != 1 || p.Jobs[0].Job != "rn50" || p.Jobs[0].Verdict != "unknown" || len(p.Nodes) != 1 || p.Nodes[0].Addr != "this node" {
		t.Errorf("%s", text)
	}
}

// The page works without any other host, and its policy would stop it if it did not.
func TestNothingComesFromElsewhere(t *testing.T) {
	h := handlerOf(source("rn50"))
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]+|@import|innerHTML|eval\(`)
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		code, header, text := get(t, h, path)
		if code != http.StatusOK || len(text) < 500 {
			t.Fatalf("%s: %d, %d bytes", path, code, len(text))
		}
		for _, found := range elsewhere.FindAllString(text, -1) {
			if !strings.Contains(found, "//www.w3.org") { // a name, not an address
				t.Errorf("%s has %s", path, found)
			}
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
	for _, path := range []string{"/web/", "/../page.go", "/none", "/page.js/"} {
		if code, _, _ := get(t, h, path); code == http.StatusOK {
			t.Errorf("%s is there", path)
		}
	}
}

// Readers share pictures: many of them cost no more than one.
func TestPicturesAreShared(t *testing.T) {
	l := page.NewLive(source("rn50"))
	if a, b := l.Overview(), l.Overview(); a != b {
		t.Error("two pictures at once")
	}
}

// The past of each kind of subject is found by its names, however they are written.
func TestHistory(t *testing.T) {
	h, live := history.New(), page.NewLive(source("rn 50/ä"))
	h.Add(live.Overview())
	handler := page.Handler(page.Options{Overview: live.Overview, History: h})
	for query, figure := range map[string]string{
		"job=rn+50%2F%C3%A4&plan=plan": "nodes", "job=rn+50%2F%C3%A4&plan=plan&rank=0": "step_seconds", "node=this+node": "wants",
	} {
		code, header, text := get(t, handler, "/history.json?"+query)
		var past struct{ Figures map[string][]*float64 }
		if err := json.Unmarshal([]byte(text), &past); err != nil || code != http.StatusOK || header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %v %s", query, code, err, text)
		}
		if points := past.Figures[figure]; len(points) != history.Slots || (figure == "nodes") != (points[history.Slots-1] != nil && *points[history.Slots-1] == 1) {
			t.Errorf("%s: %s", query, text)
		}
	}
	if code, _, text := get(t, handler, "/history.json?job=other&plan=plan"); code != http.StatusOK || !strings.Contains(text, `"unknown":"nothing`) {
		t.Errorf("%d %s", code, text)
	}
	if code, _, _ := get(t, handler, "/history.json?job=a&rank=-1"); code != http.StatusBadRequest {
		t.Errorf("a rank of -1 gives %d", code)
	}
}

// Pictures of a batch come as JPEG in the answer, which the page's policy lets it show; where there are none it says why.
func TestBatch(t *testing.T) {
	o := page.Options{Overview: page.NewLive(source("rn50")).Overview, History: history.New()}
	if _, _, text := get(t, page.Handler(o), "/batch.json?job=rn50&plan=plan"); !strings.Contains(text, `"pictures":[],"missing":"only a node has pictures`) {
		t.Error(text)
	}
	o.Batch = func(_ *http.Request, job, plan string) page.Batch {
		return page.Batch{Epoch: 3, Missing: job + plan, Pictures: []*image.RGBA{image.NewRGBA(image.Rect(0, 0, 9, 5))}}
	}
	_, header, text := get(t, page.Handler(o), "/batch.json?job=rn+50&plan=plan")
	var b struct {
		Pictures []string
		Missing  string
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.Missing != "rn 50plan" || len(b.Pictures) != 1 {
		t.Fatalf("%v %s", err, text)
	}
	file, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(b.Pictures[0], "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil || m.Width != 9 || m.Height != 5 || !strings.Contains(header.Get("Content-Security-Policy"), "img-src data:;") {
		t.Errorf("%v %v %v", m, err, header)
	}
}
