package agent

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// Prometheus gets the rank's numbers of an agent: none before there are steps, none that are unknown.
func TestMetrics(t *testing.T) {
	n := &fakeNode{pulses: make(chan *pb.Pulse, 4)}
	c := startWith(t, n, Options{Version: "v1"})
	scrape := func() string {
		t.Helper()
		registry := prometheus.NewRegistry()
		registry.MustRegister(c.agent.Metrics())
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		text := w.Body.String()
		if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("names of metrics: %v, %v", problems, err)
		}
		return text
	}
	if s := scrape(); !strings.Contains(s, `feedwater_agent_info{version="v1"} 1`) || !strings.Contains(s, "feedwater_agent_loaders 0") ||
		!strings.Contains(s, `feedwater_agent_nodes{state="ready"} 0`) || strings.Contains(s, "rank=") {
		t.Errorf("before a plan is open: %s", s)
	}
	c.open(4, nil)
	c.send(c.loader, wantPacket(want{id: 1, count: 4}))
	c.done(want{id: 1, count: 4})
	nan := math.NaN()
	var steps [][5]float64
	for i := range 20 {
		steps = append(steps, [5]float64{float64(i), 0.2, 0.1, nan, nan})
	}
	c.send(c.loader, pulsePacket(1.5, steps...))
	<-n.pulses
	s := scrape()
	for _, want := range []string{
		"feedwater_agent_loaders 1\n", `feedwater_agent_nodes{state="ready"} 1`, `rank="3"`, "feedwater_agent_wait_ratio{", "} 0.5\n",
		"feedwater_agent_step_seconds{", "} 0.2\n", "feedwater_agent_ready_batches{", "feedwater_agent_batches_total{", "feedwater_agent_hedges_total{",
	} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	if strings.Contains(s, "idle_ratio") || strings.Contains(s, `job="`) {
		t.Errorf("the idle, which nobody knows, or the label job:\n%s", s)
	}
}
