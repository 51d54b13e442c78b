package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedwater-io/feedwater/pipeline"
)

const namespace, subsystem = "feedwater", "node"

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
}

// newCounters begin at 0 for each known value of their label, so that rates see the first event.
func newCounters(name, help, label string, known []string) *prometheus.CounterVec {
	options := prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	v := prometheus.NewCounterVec(options, []string{label})
	for _, value := range known {
		v.WithLabelValues(value)
	}
	return v
}

func newHistogram(name, help string, from, factor float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
		Buckets: prometheus.ExponentialBuckets(from, factor, 9),
	})
}

func newGauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, value)
}

// optionalGauge is a gauge without a sample while its value is unknown.
type optionalGauge struct {
	desc  *prometheus.Desc
	value func() (v float64, ok bool)
}

func newOptionalGauge(name, help string, value func() (float64, bool)) *optionalGauge {
	return &optionalGauge{prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, nil, nil), value}
}

// Describe implements prometheus.Collector.
func (s *optionalGauge) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }

// Collect implements prometheus.Collector.
func (s *optionalGauge) Collect(ch chan<- prometheus.Metric) {
	if v, ok := s.value(); ok {
		ch <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, v)
	}
}

// newOwnCounter tells what another one counts.
func newOwnCounter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, value)
}

// newProgramCounter is newOwnCounter for what nodes and agents have both.
func newProgramCounter(program, name, help string, value func() int64) prometheus.Collector {
	opts := prometheus.CounterOpts{Namespace: namespace, Subsystem: program, Name: name, Help: help}
	return prometheus.NewCounterFunc(opts, func() float64 { return float64(value()) })
}

// newWorkCounter counts where workers' time goes.
func newWorkCounter(e Engine, name, help string, of func(pipeline.Work) float64) prometheus.Collector {
	return newOwnCounter(name, help, func() float64 { return of(e.Work()) })
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
