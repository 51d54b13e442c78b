package server

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	jobmetrics "github.com/feedwater-io/feedwater/watch/metrics"
)

// metrics is all that a node tells Prometheus. Everything is counted in base units: seconds, bytes, core-seconds.
type metrics struct {
	batches, samples, bytes, coreSeconds, late    prometheus.Counter
	stalled, shared, handshakes, hedges, unplaced prometheus.Counter
	failures, refused, cancelled                  *prometheus.CounterVec
	sampleErrors                                  *prometheus.CounterVec
	makeSeconds, waitSeconds, scanSeconds         prometheus.Histogram
	gauges                                        []prometheus.Collector
	jobs, reading, making, decoded                prometheus.Collector
}

func newMetrics(s *Server) *metrics {
	return &metrics{
		batches:      newCounter("batches_total", "Batches sent."),
		samples:      newCounter("samples_total", "Samples in batches sent."),
		bytes:        newCounter("sent_bytes_total", "Bytes of batches sent."),
		coreSeconds:  newCounter("make_core_seconds_total", "Worker-seconds by the clock that making batches took, sent or not."),
		late:         newCounter("late_batches_total", "Batches that were made after they were due."),
		stalled:      newCounter("stalled_streams_total", "Streams ended because the trainer took no data."),
		shared:       newCounter("shared_batches_total", "Batches that another want had made."),
		handshakes:   newCounter("failed_handshakes_total", "Connections that ended before they were secure."),
		unplaced:     newCounter("refused_connections_total", "Connections closed at once, since as many were open as may be."),
		hedges:       newCounter("hedges_total", "Wants that another node had too, and was slow with."),
		cancelled:    newCounters("cancelled_wants_total", "Wants that trainers took back, by why.", "reason", listReasons()),
		failures:     newCounters("failures_total", "Wants answered with a failure, by code.", "code", failureCodes()),
		refused:      newCounters("refused_calls_total", "Calls turned away before anything of them was read, by code.", "code", failureCodes()),
		sampleErrors: newCounters("sample_errors_total", "Samples that did not decode, by what became of them.", "outcome", []string{raised, skipped, substituted}),
		makeSeconds:  newHistogram("make_seconds", "From a want's arrival until its batch was made.", 0.001, 4),
		waitSeconds:  newHistogram("send_seconds", "From a want's arrival until its batch was handed to the network.", 0.001, 4),
		scanSeconds:  newHistogram("scan_seconds", "Time that taking a snapshot took.", 0.01, 4),
		jobs:         jobmetrics.NewJobs(s.source),
		reading:      newWorkCounter(s, "read_seconds_total", "Time of workers that went into reading files.", func(w pipeline.Work) float64 { return w.ReadSeconds }),
		making:       newWorkCounter(s, "decode_core_seconds_total", "Worker-seconds by the clock that went into decoding and transforming: core-seconds where each worker has a core, more where it is throttled.", func(w pipeline.Work) float64 { return w.CoreSeconds }),
		decoded:      newWorkCounter(s, "decoded_samples_total", "Samples that were decoded, sent or not.", func(w pipeline.Work) float64 { return float64(w.Samples) }),
		gauges: []prometheus.Collector{
			newGauge("streams", "Streams that are open.", func() float64 { return float64(s.streams.CountOpen()) }),
			newGauge("slot_bytes", "Memory of all slots, lent or free.", func() float64 { used, _ := s.memory.CountBytes(); return float64(used) }),
			newGauge("lent_bytes", "Memory of slots that hold or await a batch.", func() float64 { _, lent := s.memory.CountBytes(); return float64(lent) }),
			newGauge("limit_bytes", "Memory that slots may take.", func() float64 { return float64(s.memory.Limit) }),
			newGauge("queued_core_seconds", "Work that is queued.", func() float64 { return s.engine.Queued() }),
			newGauge("workers", "Samples that are made at once.", func() float64 { return float64(s.engine.Workers()) }),
			newGauge("snapshots", "Data sets that are open.", func() float64 { return float64(s.finder.CountFolders()) }),
			newOptionalGauge("nodes_wanted", "Nodes like this one that would feed the jobs that have streams here.", s.demand.AllNodes),
			newGauge("draining", "1 while the node shuts down.", func() float64 { return oneIf(s.streams.IsDraining()) }),
			newInfo(s),
			newRootMetrics(s), newTrafficMetrics(slices.Collect(maps.Values(s.options.Roots))),
		},
	}
}

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

// failureCodes are the names of all gRPC codes but OK.
func failureCodes() []string {
	var names []string
	for code := codes.OK + 1; code <= codes.Unauthenticated; code++ {
		names = append(names, code.String())
	}
	return names
}

// listReasons are the metrics' words for all reasons of this version of the contract.
func listReasons() []string {
	var words []string
	for number := range pb.CancelReason_name {
		if word := reasonWord(pb.CancelReason(number)); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// What becomes of samples that do not decode.
const raised, skipped, substituted = "raised", "skipped", "substituted"

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

// newWorkCounter counts where workers' time goes.
func newWorkCounter(s *Server, name, help string, of func(pipeline.Work) float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, func() float64 {
		return of(s.engine.Work())
	})
}

func newInfo(s *Server) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "info", Help: "1; the labels say what runs here.",
		ConstLabels: prometheus.Labels{"version": s.options.Version, "build": s.options.Build, "kernels": s.engine.Kernels(), "numerics": s.engine.Numerics()},
	}, func() float64 { return 1 })
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *metrics) listCollectors() []prometheus.Collector {
	return append([]prometheus.Collector{
		m.jobs, m.reading, m.making, m.decoded,
		m.batches, m.samples, m.bytes, m.coreSeconds, m.late, m.stalled, m.shared, m.handshakes, m.unplaced, m.hedges, m.cancelled, m.failures, m.refused, m.sampleErrors, m.makeSeconds, m.waitSeconds, m.scanSeconds,
	}, m.gauges...)
}

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range s.metrics.listCollectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	for _, c := range s.metrics.listCollectors() {
		c.Collect(ch)
	}
}

// countMade counts a want that came back from the pipeline.
func (m *metrics) countMade(w *want, made *Made) {
	if made.Failure != nil {
		return
	}
	now := time.Now()
	m.makeSeconds.Observe(now.Sub(w.arrived).Seconds())
	m.coreSeconds.Add(made.Header.CoreSeconds)
	if made.Shared {
		m.shared.Inc()
	}
	if due := w.inner.Due; due.After(w.arrived) && now.After(due) {
		m.late.Inc()
	}
	for _, e := range made.Header.Errors {
		if e.Substituted {
			m.sampleErrors.WithLabelValues(substituted).Inc()
		} else {
			m.sampleErrors.WithLabelValues(skipped).Inc()
		}
	}
}

func (m *metrics) countFailure(f *pb.Failure) {
	m.failures.WithLabelValues(codes.Code(f.Code).String()).Inc()
	if f.SampleError != nil {
		m.sampleErrors.WithLabelValues(raised).Inc()
	}
}

// countWithdrawn counts a want that its trainer took back.
func (m *metrics) countWithdrawn(why pb.CancelReason) {
	m.cancelled.WithLabelValues(reasonWord(why)).Inc()
}

// reasonWord is why, in the metrics' words; those of later versions are not told apart.
func reasonWord(why pb.CancelReason) string {
	switch why {
	case pb.CancelReason_CANCEL_REASON_MOVED:
		return "moved"
	case pb.CancelReason_CANCEL_REASON_OVERTAKEN:
		return "overtaken"
	case pb.CancelReason_CANCEL_REASON_LATE:
		return "late"
	case pb.CancelReason_CANCEL_REASON_SILENT:
		return "silent"
	}
	return "unused"
}

func (m *metrics) countSent(w *want, bytes int) {
	m.batches.Inc()
	m.bytes.Add(float64(bytes))
	m.samples.Add(float64(samplesOf(w.made.Header)))
	m.waitSeconds.Observe(time.Since(w.arrived).Seconds())
}

// samplesOf is how many samples a batch has.
func samplesOf(h *pb.Header) uint64 {
	if f := h.GetFields(); len(f) > 0 && len(f[0].Shape) > 0 {
		return f[0].Shape[0]
	}
	return 0
}

func (m *metrics) countScan(took time.Duration) { m.scanSeconds.Observe(took.Seconds()) }
