package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/scaler"
	"github.com/feedwater-io/feedwater/server/metrics"
)

var (
	described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	inTables  = regexp.MustCompile("(?m)^\\| `feedwater_((?:agent|scaler)_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\|")
)

// docs/metrics.md has what agents and scalers tell Prometheus, with all labels, and nothing else. What nodes tell is tested beside it.
func TestMetricsAreDocumented(t *testing.T) {
	have := map[string]string{"agent_info": "version", "scaler_info": "version"}
	collectors := append(metrics.Kept("agent", nil, nil), agent.New(agent.Options{}).Metrics(), scaler.New(scaler.Options{}))
	for _, c := range collectors {
		for _, d := range describe(c) {
			m := described.FindStringSubmatch(d)
			if m == nil {
				t.Fatalf("%s says nothing", d)
			}
			if name := m[1][len("feedwater_"):]; have[name] == "" {
				have[name] = m[2]
			}
		}
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, m := range inTables.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = m[2]
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if labels, ok := documented[name]; !ok || labels != have[name] {
			t.Errorf("%s{%s} is documented with {%s}: %v", name, have[name], labels, ok)
		}
		delete(documented, name)
	}
	if len(documented) > 0 {
		t.Errorf("documented and not there: %v", documented)
	}
}

func describe(c prometheus.Collector) (all []string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		all = append(all, d.String())
	}
	return all
}

// Ranks of one machine have ports in a row; a port that others reach has to be asked for.
func TestAgentAddress(t *testing.T) {
	for _, name := range []string{"LOCAL_RANK", "SLURM_LOCALID"} {
		t.Setenv(name, "")
	}
	for addr, want := range map[string]string{"127.0.0.1:9400": "127.0.0.1:9403", "[::1]:9400": "[::1]:9403", "127.0.0.1:0": "127.0.0.1:0"} {
		o := &agentOptions{http: addr}
		if got := o.metricsAddress(); got != addr {
			t.Errorf("%s alone: %s", addr, got)
		}
		t.Setenv("LOCAL_RANK", "3")
		if got := o.metricsAddress(); got != want {
			t.Errorf("%s of rank 3: %s, want %s", addr, got, want)
		}
		t.Setenv("LOCAL_RANK", "")
	}
	t.Setenv("FEEDWATER_HTTP", ":7071") // a node's
	t.Setenv("FEEDWATER_AGENT_HTTP", "127.0.0.1:9400")
	t.Setenv("FEEDWATER_LOG_FORMAT", "json")
	if o, err := agentOptionsFromEnvironment(); err != nil || o.http != "127.0.0.1:9400" || o.format != "json" {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv("FEEDWATER_AGENT_HTTP", ":9400")
	if _, err := agentOptionsFromEnvironment(); err == nil {
		t.Error("a port for all is taken")
	}
	t.Setenv("FEEDWATER_AGENT_HTTP_INSECURE", "1")
	if _, err := agentOptionsFromEnvironment(); err != nil {
		t.Errorf("a port for all that was asked for: %v", err)
	}
}
