package scaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics tells Prometheus what the scaler knows.
type metrics struct {
	scaler *Scaler
	info,
	streams prometheus.Gauge
	waitCalls, unlisted,
	unwatched prometheus.Counter
	wanted, listed, up, silent, jobs *prometheus.Desc
}

func newMetrics(s *Scaler, version string) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "feedwater", Subsystem: "scaler", Name: name, Help: help}
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts(opts(name, help)))
	}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("feedwater", "scaler", name), help, nil, nil)
	}
	info := prometheus.GaugeOpts(opts("info", "1; the label says what runs here."))
	info.ConstLabels = prometheus.Labels{"version": version}
	m := &metrics{
		scaler: s, info: prometheus.NewGauge(info),
		streams:   prometheus.NewGauge(prometheus.GaugeOpts(opts("streams", "Streams by which KEDA hears at once whether there is a trainer."))),
		waitCalls: counter("knocks_total", "Calls of trainers that wait for a first node."),
		unlisted:  counter("failed_lists_total", "Times that the nodes could not be listed."),
		unwatched: counter("failed_watches_total", "Times that a node could not be watched."),
		wanted:    gauge("nodes_wanted", "Nodes that there should be, as KEDA is told."),
		listed:    gauge("nodes_listed", "Nodes that are listed."),
		up:        gauge("nodes_up", "Nodes that answer."),
		silent:    gauge("nodes_silent", "Nodes that answered and do so no more, and still count."),
		jobs:      gauge("jobs", "Jobs that the nodes tell of."),
	}
	m.info.Set(1)
	return m
}

// counters are those that count by themselves.
func (m *metrics) counters() []prometheus.Collector {
	return []prometheus.Collector{m.info, m.streams, m.waitCalls, m.unlisted, m.unwatched}
}

// Describe implements prometheus.Collector.
func (s *Scaler) Describe(ch chan<- *prometheus.Desc) {
	m := s.metrics
	for _, c := range m.counters() {
		c.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{m.wanted, m.listed, m.up, m.silent, m.jobs} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A number of nodes that is not known has no sample.
func (s *Scaler) Collect(ch chan<- prometheus.Metric) {
	m := s.metrics
	for _, c := range m.counters() {
		c.Collect(ch)
	}
	gauge := func(d *prometheus.Desc, v int) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	if n, err := s.Wanted(); err == nil {
		gauge(m.wanted, n)
	}
	s.mu.Lock()
	p := s.countNodes(time.Now())
	s.mu.Unlock()
	gauge(m.listed, p.listed)
	gauge(m.up, p.up)
	gauge(m.silent, p.silent)
	gauge(m.jobs, p.jobs)
}

// tally is how many there are of what.
type tally struct{ listed, up, silent, jobs int }

// countNodes looks at all nodes as survey does, and changes nothing. mu is held.
func (s *Scaler) countNodes(now time.Time) (t tally) {
	jobs := map[job]bool{}
	for _, n := range s.nodes {
		if n.listed {
			t.listed++
		}
		switch n.stateAt(now) {
		case silent:
			t.silent++
		case up:
			t.up++
			for _, j := range n.last.Jobs {
				jobs[job{j.Job, j.Plan}] = true
			}
		}
	}
	t.jobs = len(jobs)
	return t
}
