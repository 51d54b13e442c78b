package server_test

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
	"github.com/feedwater-io/feedwater/watch/page"
)

// busyNode is a node in whose scrape every metric has a sample: there is a job with a meter, and there were failures.
func busyNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t, &servertest.Engine{}, server.Options{Version: "v1"})
	tr := n.fetch(n.conn())
	tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: n.open(plan).Plan, Job: "rn50"}}})
	for rank, idle := range []float64{0.05, 0.07} { // the second one comes by another stream
		if rank > 0 {
			tr = n.fetch(n.conn())
			tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: n.open(plan).Plan, Job: "rn50"}}})
		}
		var steps []*pb.Step
		for i := range uint64(20) {
			steps = append(steps, &pb.Step{Number: i, Step: 0.2, Wait: 0.1, Idle: proto.Float64(idle)})
		}
		tr.send(pulseOf(&pb.Pulse{Rank: uint32(rank), World: 2, Samples: 8, Steps: steps, Host: "gpu"}))
		tr.want(1, rangeOf(0, 0, 8))
		tr.mustNext()
		tr.want(2, rangeOf(0, 0, 0))
		tr.mustNext()
	}
	return n
}

// scrape is /metrics as Prometheus gets it.
func (n *node) scrape() string {
	n.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(n)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

var typed = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// kinds are the metrics of a scrape and their types.
func kinds(scrape string) map[string]string {
	all := map[string]string{}
	for _, m := range typed.FindAllStringSubmatch(scrape, -1) {
		all[m[1]] = m[2]
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var described = regexp.MustCompile(`fqName: "([^"]+)"`)

// metrics are the types of all metrics that the node can have; "any" of those without a sample now: nothing has gone
// wrong, or nobody told.
func (n *node) metrics() map[string]string {
	all := map[string]string{}
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		n.Describe(descs)
	}()
	for d := range descs {
		all[described.FindStringSubmatch(d.String())[1]] = "any"
	}
	maps.Copy(all, kinds(n.scrape()))
	return all
}

func TestMetricsAreDocumented(t *testing.T) {
	have := busyNode(t).metrics()
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(feedwater_(?:jobs?|node)[a-z_]*)(?:\\{[a-z,]+\\})?` \\| (\\w+) \\|").FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		documented[m[1]] = m[2]
	}
	for name, kind := range have {
		if documented[name] == "" || kind != "any" && documented[name] != kind {
			t.Errorf("%s, a %s, is documented as %q", name, kind, documented[name])
		}
	}
	for name := range documented {
		if have[name] == "" {
			t.Errorf("%s is documented and not there", name)
		}
	}
}

// A rate has no first event where a counter has no sample before it.
func TestCountersBeginAtZero(t *testing.T) {
	roots := map[string]string{"photos": "s3://photographs/2026"}
	scrape := newNode(t, &servertest.Engine{}, server.Options{Roots: roots}).scrape()
	documented := regexp.MustCompile("(?m)^\\| `(feedwater_node_[a-z_]+)(?:\\{([a-z]+)\\})?` \\| counter \\|").FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1)
	if len(documented) < 15 {
		t.Fatalf("%d counters in docs/metrics.md", len(documented))
	}
	for _, m := range documented {
		series := regexp.MustCompile(`(?m)^`+m[1]+`(\{`+m[2]+`="[A-Za-z3:/]+"\})? 0$`).FindAllString(scrape, -1)
		if one := m[2] == "" || m[2] == "root" || m[2] == "place"; one && len(series) != 1 || !one && len(series) < 3 { // the node has one root, in one bucket
			t.Errorf("%s of a new node has the samples %q", m[0], series)
		}
	}
}

// Prometheus gives each series a label of its own scrape job, and renames what has that name already.
func TestNoMetricHasALabelOfPrometheus(t *testing.T) {
	for _, label := range []string{"job", "instance"} {
		if found := regexp.MustCompile(`(?m)^.*[{,]` + label + `=".*$`).FindString(busyNode(t).scrape()); found != "" {
			t.Errorf("the label %s in %s", label, found)
		}
	}
}

// Whatever the dashboard and the rules name has to be in a real scrape.
func TestDashboardAndRulesNameRealMetrics(t *testing.T) {
	have := busyNode(t).metrics()
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, file := range []string{"../deploy/grafana/feedwater.json", "../deploy/prometheus/feedwater.rules.yaml"} {
		text := read(t, file)
		names := regexp.MustCompile(`feedwater_[a-z_]+`).FindAllString(text, -1)
		if len(names) < 3 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, name := range names {
			base := suffix.ReplaceAllString(name, "")
			if have[name] == "" && have[base] != "histogram" {
				t.Errorf("%s names %s, which no node has", file, name)
			}
		}
		if strings.HasSuffix(file, ".json") && !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON", file)
		}
	}
}

// The page and Prometheus must not tell different stories.
func TestScrapeAndPageAgree(t *testing.T) {
	n := busyNode(t)
	w := httptest.NewRecorder()
	page.Handler(page.Options{Overview: page.NewLive(n.Source()).Overview}).ServeHTTP(w, httptest.NewRequest("GET", "/watch.json", nil))
	var shown struct {
		Jobs []struct {
			Job, Plan, Verdict string
			World              float64
			Idle, Wait         float64
			Supply             float64
			Ranks              []struct{ Wait float64 }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || len(shown.Jobs) != 1 || len(shown.Jobs[0].Ranks) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	j := shown.Jobs[0]
	scrape := n.scrape()
	for name, want := range map[string]float64{
		"gpus": j.World, "idle_ratio": j.Idle, "wait_ratio": j.Wait, "wasted_gpus": j.Idle * j.World, "supply_samples_per_second": j.Supply,
		"data_bound": map[string]float64{"data-bound": 1}[j.Verdict], "ranks_heard": 2, "wait_worst_ratio": max(j.Ranks[0].Wait, j.Ranks[1].Wait),
	} {
		if got := sample(t, scrape, `feedwater_job_`+name+`{plan="`+j.Plan[:12]+`",run="rn50"}`); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: the scrape has %g, the page %g", name, got, want)
		}
	}
	if idle := j.Idle; idle < 0.299 || idle > 0.301 {
		t.Errorf("idle %g, want the mean of 0.25 and 0.35", idle)
	}
}

func sample(t *testing.T, scrape, series string) float64 {
	t.Helper()
	for line := range strings.Lines(scrape) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			var v float64
			if err := json.Unmarshal([]byte(rest), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s in\n%s", series, scrape)
	return 0
}

// Names of jobs are the trainers' choice: they must not make series without end.
func TestJobMetricsAreBounded(t *testing.T) {
	n := newNode(t, &servertest.Engine{}, server.Options{})
	text, conn := n.open(plan).Plan, n.conn()
	for i := range 60 {
		tr := n.fetch(conn)
		tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: text, Job: time.Unix(int64(i), 0).String()}}})
		tr.want(1, rangeOf(0, 0, 1))
		tr.mustNext()
	}
	scrape := n.scrape()
	if k := strings.Count(scrape, "feedwater_job_gpus{"); k != 50 || sample(t, scrape, "feedwater_jobs") != 60 {
		t.Errorf("%d series", k)
	}
}

// What is unknown has no sample, which an alert can tell from any number.
func TestUnknownHasNoSample(t *testing.T) {
	n := newNode(t, &servertest.Engine{Cores: -1}, server.Options{}) // it does not know how many it has
	if scrape := n.scrape(); strings.Contains(scrape, "NaN") || strings.Contains(scrape, "nodes_wanted") {
		t.Errorf("nodes wanted, or NaN:\n%s", scrape)
	}
}
