package scaler_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape is /metrics as Prometheus gets it.
func scrape(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// What Prometheus sees is what KEDA is told; a number that is not known has no sample, and counters begin at 0.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOf(t, func(w *world) {
			w.node("a").set(map[string]uint32{"one": 3, "two#x": 2}, false)
			w.node("b").set(map[string]uint32{"one": 3}, false)
			w.node("c").set(nil, true) // never answers
		})
		check := func(failing bool, want string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(scrape(t, w.scaler)) {
				if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "feedwater_scaler_"); ok && !strings.HasPrefix(rest, "info{") {
					if count, ok := strings.CutPrefix(rest, "failed_watches_total "); ok {
						if (count != "0") != failing {
							t.Errorf("%s failed watches", count)
						}
						continue
					}
					got = append(got, rest)
				}
			}
			if all := strings.Join(got, ", "); all != want {
				t.Errorf("%s, want %s", all, want)
			}
		}
		time.Sleep(time.Second) // c may still answer: nothing is settled
		check(false, "failed_lists_total 0, jobs 2, knocks_total 0, nodes_listed 3, nodes_silent 0, nodes_up 2, streams 0")
		time.Sleep(time.Minute)
		if n := w.metric(); n != 5 {
			t.Fatalf("%d nodes are wanted", n)
		}
		check(true, "failed_lists_total 0, jobs 2, knocks_total 0, nodes_listed 3, nodes_silent 0, nodes_up 2, nodes_wanted 5, streams 0")
		if _, err := w.scaler.Open(t.Context(), nil); err == nil {
			t.Error("a scaler opens a plan")
		}
		w.mu.Lock()
		w.listeners["d"] = nil // listed, and nobody is there
		w.mu.Unlock()
		time.Sleep(6 * time.Second)
		problems, err := promlint.New(strings.NewReader(scrape(t, w.scaler))).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("names of metrics: %v, %v", problems, err)
		}
		check(true, "failed_lists_total 0, jobs 2, knocks_total 1, nodes_listed 4, nodes_silent 0, nodes_up 2, nodes_wanted 5, streams 0")
	})
}
