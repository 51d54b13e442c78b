package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// trafficMetrics tell what this process asked of buckets and web servers. They begin at 0 for those that roots lie in.
type trafficMetrics struct {
	roots                                             []string
	requests, retries, hedges, failed, bytes, seconds *prometheus.Desc
}

func newTrafficMetrics(roots []string) *trafficMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, []string{"place"}, nil)
	}
	return &trafficMetrics{
		roots:    roots,
		requests: desc("place_requests_total", "Requests to a bucket or a web server."),
		retries:  desc("place_retries_total", "Requests that repeated another one after trouble."),
		hedges:   desc("place_hedges_total", "Requests that were sent beside another one, which took long."),
		failed:   desc("place_failures_total", "Questions that were given up after all their tries."),
		bytes:    desc("place_read_bytes_total", "Bytes of objects that were read."),
		seconds:  desc("place_request_seconds_total", "Time that requests took, all of them together."),
	}
}

// Describe implements prometheus.Collector.
func (m *trafficMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.retries, m.hedges, m.failed, m.bytes, m.seconds} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *trafficMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, t := range dataset.Traffics(m.roots...) {
		for d, v := range map[*prometheus.Desc]float64{
			m.requests: float64(t.Requests), m.retries: float64(t.Retries), m.hedges: float64(t.Hedges), m.failed: float64(t.Failed),
			m.bytes: float64(t.Bytes), m.seconds: t.Seconds,
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, t.Place)
		}
	}
}
