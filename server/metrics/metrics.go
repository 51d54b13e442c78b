// Package metrics counts what a node does, for Prometheus, for watchers. It decides nothing. All that it tells has base
// units: seconds, bytes, core-seconds. Its methods may be called from many goroutines at once.
package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/server/demand"
	"github.com/feedwater-io/feedwater/server/lifecycle"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/watch"
	jobmetrics "github.com/feedwater-io/feedwater/watch/metrics"
)

// Engine is what makes the node's batches.
type Engine interface {
	Numerics() string
	Kernels() string
	Workers() int
	// Queued is the core-seconds of work that is queued.
	Queued() float64
	// Work is what was done since the start.
	Work() pipeline.Work
}

// Sources are what a Collector reads whenever it is asked. All of them are required but for ReadCache, Pixels and Index.
type Sources struct {
	Engine  Engine
	Memory  *batchmem.Memory
	Streams *lifecycle.Streams
	Finder  *snapshots.Finder
	Demand  *demand.Meter
	Jobs    *watch.Source
	Storage *bulkhead.Roots
	// ReadCache may be nil.
	ReadCache *readcache.Cache
	// Pixels may be nil.
	Pixels *pixelcache.Cache
	// Index may be nil.
	Index *pipeline.IndexCounts
	// Roots are the folders of those that have names, by name.
	Roots          map[string]string
	Version, Build string
}

// Collector is all that a node tells Prometheus.
type Collector struct {
	// FailedHandshakes and RefusedConnections are counted by whoever lets connections in.
	FailedHandshakes, RefusedConnections prometheus.Counter

	batches, samples, bytes, coreSeconds, late prometheus.Counter
	stalled, shared, hedges                    prometheus.Counter
	failures, refused, cancelled               *prometheus.CounterVec
	sampleErrors                               *prometheus.CounterVec
	makeSeconds, waitSeconds, scanSeconds      prometheus.Histogram
	gauges, kept                               []prometheus.Collector
	jobs, reading, making, decoded             prometheus.Collector
}

// New returns a Collector whose counters are 0.
func New(s Sources) *Collector {
	return &Collector{
		batches:            newCounter("batches_total", "Batches sent."),
		samples:            newCounter("samples_total", "Samples in batches sent."),
		bytes:              newCounter("sent_bytes_total", "Bytes of batches sent."),
		coreSeconds:        newCounter("make_core_seconds_total", "Worker-seconds by the clock that making batches took, sent or not."),
		late:               newCounter("late_batches_total", "Batches that were made after they were due."),
		stalled:            newCounter("stalled_streams_total", "Streams ended because the trainer took no data."),
		shared:             newCounter("shared_batches_total", "Batches that another want had made."),
		FailedHandshakes:   newCounter("failed_handshakes_total", "Connections that ended before they were secure."),
		RefusedConnections: newCounter("refused_connections_total", "Connections closed at once, since as many were open as may be."),
		hedges:             newCounter("hedges_total", "Wants that another node had too, and was slow with."),
		cancelled:          newCounters("cancelled_wants_total", "Wants that trainers took back, by why.", "reason", listReasons()),
		failures:           newCounters("failures_total", "Wants answered with a failure, by code.", "code", failureCodes()),
		refused:            newCounters("refused_calls_total", "Calls turned away before anything of them was read, by code.", "code", failureCodes()),
		sampleErrors:       newCounters("sample_errors_total", "Samples that did not decode, by what became of them.", "outcome", []string{raised, skipped, substituted}),
		makeSeconds:        newHistogram("make_seconds", "From a want's arrival until its batch was made.", 0.001, 4),
		waitSeconds:        newHistogram("send_seconds", "From a want's arrival until its batch was handed to the network.", 0.001, 4),
		scanSeconds:        newHistogram("scan_seconds", "Time that taking a snapshot took.", 0.01, 4),
		jobs:               jobmetrics.NewJobs(s.Jobs),
		reading:            newWorkCounter(s.Engine, "read_seconds_total", "Time of workers that went into reading files.", func(w pipeline.Work) float64 { return w.ReadSeconds }),
		making:             newWorkCounter(s.Engine, "decode_core_seconds_total", "Worker-seconds by the clock that went into decoding and transforming: core-seconds where each worker has a core, more where it is throttled.", func(w pipeline.Work) float64 { return w.CoreSeconds }),
		decoded:            newWorkCounter(s.Engine, "decoded_samples_total", "Samples that were decoded, sent or not.", func(w pipeline.Work) float64 { return float64(w.Samples) }),
		kept:               Kept(subsystem, s.Pixels, s.Index),
		gauges: []prometheus.Collector{
			newGauge("streams", "Streams that are open.", func() float64 { return float64(s.Streams.CountOpen()) }),
			newGauge("slot_bytes", "Memory of all slots, lent or free.", func() float64 { used, _ := s.Memory.CountBytes(); return float64(used) }),
			newGauge("lent_bytes", "Memory of slots that hold or await a batch.", func() float64 { _, lent := s.Memory.CountBytes(); return float64(lent) }),
			newGauge("limit_bytes", "Memory that slots may take.", func() float64 { return float64(s.Memory.Limit) }),
			newGauge("queued_core_seconds", "Work that is queued.", func() float64 { return s.Engine.Queued() }),
			newGauge("workers", "Samples that are made at once.", func() float64 { return float64(s.Engine.Workers()) }),
			newGauge("snapshots", "Data sets that are open.", func() float64 { return float64(s.Finder.CountFolders()) }),
			newOptionalGauge("nodes_wanted", "Nodes like this one that would feed the jobs that have streams here.", s.Demand.AllNodes),
			newGauge("draining", "1 while the node shuts down.", func() float64 { return oneIf(s.Streams.IsDraining()) }),
			newInfo(&s),
			newRootMetrics(s.Storage, s.Roots), newTrafficMetrics(slices.Collect(maps.Values(s.Roots))), newCacheMetrics(s.ReadCache),
		},
	}
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

func newInfo(s *Sources) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "info", Help: "1; the labels say what runs here.",
		ConstLabels: prometheus.Labels{"version": s.Version, "build": s.Build, "kernels": s.Engine.Kernels(), "numerics": s.Engine.Numerics()},
	}, func() float64 { return 1 })
}

func (m *Collector) listCollectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{
		m.jobs, m.reading, m.making, m.decoded,
		m.batches, m.samples, m.bytes, m.coreSeconds, m.late, m.stalled, m.shared, m.FailedHandshakes, m.RefusedConnections, m.hedges, m.cancelled, m.failures, m.refused, m.sampleErrors, m.makeSeconds, m.waitSeconds, m.scanSeconds,
	}, m.gauges, m.kept)
}

// Describe implements prometheus.Collector.
func (m *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.listCollectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.listCollectors() {
		c.Collect(ch)
	}
}

// CountMade counts a batch that came back from the pipeline: of a want that arrived, and was due. Shared tells that
// another want had it made.
func (m *Collector) CountMade(h *pb.Header, arrived, due time.Time, shared bool) {
	now := time.Now()
	m.makeSeconds.Observe(now.Sub(arrived).Seconds())
	m.coreSeconds.Add(h.CoreSeconds)
	if shared {
		m.shared.Inc()
	}
	if due.After(arrived) && now.After(due) {
		m.late.Inc()
	}
	for _, e := range h.Errors {
		if e.Substituted {
			m.sampleErrors.WithLabelValues(substituted).Inc()
		} else {
			m.sampleErrors.WithLabelValues(skipped).Inc()
		}
	}
}

// CountHedge counts a want that another node had too.
func (m *Collector) CountHedge() { m.hedges.Inc() }

// CountStalled counts a stream that ended because the trainer took no data.
func (m *Collector) CountStalled() { m.stalled.Inc() }

// CountRefusal counts a call that was turned away.
func (m *Collector) CountRefusal(code codes.Code) { m.refused.WithLabelValues(code.String()).Inc() }

// CountFailure counts a want that is answered with a failure.
func (m *Collector) CountFailure(f *pb.Failure) {
	m.failures.WithLabelValues(codes.Code(f.Code).String()).Inc()
	if f.SampleError != nil {
		m.sampleErrors.WithLabelValues(raised).Inc()
	}
}

// CountWithdrawn counts a want that its trainer took back.
func (m *Collector) CountWithdrawn(why pb.CancelReason) {
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

// CountSent counts a batch of so many bytes that was sent, of a want that arrived.
func (m *Collector) CountSent(h *pb.Header, bytes int, arrived time.Time) {
	m.batches.Inc()
	m.bytes.Add(float64(bytes))
	m.samples.Add(float64(SamplesOf(h)))
	m.waitSeconds.Observe(time.Since(arrived).Seconds())
}

// SamplesOf is how many samples a batch has.
func SamplesOf(h *pb.Header) uint64 {
	if f := h.GetFields(); len(f) > 0 && len(f[0].Shape) > 0 {
		return f[0].Shape[0]
	}
	return 0
}

// CountScan counts a snapshot that was taken.
func (m *Collector) CountScan(took time.Duration) { m.scanSeconds.Observe(took.Seconds()) }
