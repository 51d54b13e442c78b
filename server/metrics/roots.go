package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
)

// rootMetrics tell of the roots that have names.
type rootMetrics struct {
	storage                       *bulkhead.Roots
	names                         map[string]string
	oldest, sick, stuck, timeouts *prometheus.Desc
}

func newRootMetrics(s *bulkhead.Roots, names map[string]string) *rootMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, []string{"root"}, nil)
	}
	return &rootMetrics{
		storage:  s,
		names:    names,
		oldest:   desc("root_oldest_call_seconds", "Age of the oldest call on the storage of a root that has not come back: a read, or a listing since it last went on."),
		sick:     desc("root_sick", "1 while the storage of a root does not answer."),
		stuck:    desc("root_stuck_calls", "Calls on the storage of a root that take longer than usual, or do not come back."),
		timeouts: desc("root_timeouts_total", "Calls on the storage of a root that were given up."),
	}
}

// Describe implements prometheus.Collector.
func (m *rootMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.oldest, m.sick, m.stuck, m.timeouts} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *rootMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, r := range m.storage.States() {
		if _, named := m.names[r.Name]; !named {
			continue // paths are no labels
		}
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, r.Oldest.Seconds(), r.Name)
		ch <- prometheus.MustNewConstMetric(m.sick, prometheus.GaugeValue, oneIf(r.Sick), r.Name)
		ch <- prometheus.MustNewConstMetric(m.stuck, prometheus.GaugeValue, float64(r.Stuck), r.Name)
		ch <- prometheus.MustNewConstMetric(m.timeouts, prometheus.CounterValue, float64(r.Timeouts), r.Name)
	}
}
