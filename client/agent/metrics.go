package agent

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

// maxRankMetrics bounds the series that names chosen by trainers can make: an agent has one rank, of few jobs.
const maxRankMetrics = 50

// nodeStates are all that NodeStatus.state can be.
var nodeStates = []string{"ready", "connecting", "scanning", "draining", "silent", "doubted", "failed"}

// metrics tells Prometheus of an agent what Watch tells people. What is unknown has no sample.
type metrics struct {
	info, loaders, nodes *prometheus.Desc
	ranks                []rankMetric
	agent                *Agent

	mu      sync.Mutex
	watcher *watch.Watcher
}

// rankMetric is one number of a rank; nil: unknown.
type rankMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pb.RankStatus) *float64
}

// Metrics collects how the agent's Loaders fare, for Prometheus; docs/metrics.md describes each. Rates need no second
// reading.
func (a *Agent) Metrics() prometheus.Collector {
	name := func(s string) string { return prometheus.BuildFQName("feedwater", "agent", s) }
	return &metrics{
		agent: a, watcher: a.source.NewWatcher(time.Now()),
		info:    prometheus.NewDesc(name("info"), "1; the label says what runs here.", []string{"version"}, nil),
		loaders: prometheus.NewDesc(name("loaders"), "Loaders that are open.", nil, nil),
		nodes:   prometheus.NewDesc(name("nodes"), "Nodes that the Loaders talk to, by state.", []string{"state"}, nil),
		ranks:   rankMetrics(name),
	}
}

func rankMetrics(name func(string) string) []rankMetric {
	one := func(kind prometheus.ValueType, of, help string, value func(*pb.RankStatus) *float64) rankMetric {
		return rankMetric{prometheus.NewDesc(name(of), help, []string{"run", "plan", "rank"}, nil), kind, value}
	}
	gauge := func(of, help string, value func(*pb.RankStatus) *float64) rankMetric {
		return one(prometheus.GaugeValue, of, help, value)
	}
	counter := func(of, help string, value func(*pb.Effort) uint64) rankMetric {
		return one(prometheus.CounterValue, of, help, func(r *pb.RankStatus) *float64 {
			if r.Effort == nil {
				return nil
			}
			return pointerTo(float64(value(r.Effort)))
		})
	}
	return []rankMetric{
		gauge("idle_ratio", "Share of the step that the GPU stands still for data.", func(r *pb.RankStatus) *float64 { return r.Idle }),
		gauge("wait_ratio", "Share of the step that the loop is blocked in next.", func(r *pb.RankStatus) *float64 { return pointerTo(r.Wait) }),
		gauge("step_seconds", "Median of the latest steps.", func(r *pb.RankStatus) *float64 { return pointerTo(r.StepP50) }),
		gauge("blocked_seconds", "For how long the loop has been blocked in next, now.", func(r *pb.RankStatus) *float64 {
			return pointerTo(r.GetBlocked().AsDuration().Seconds())
		}),
		gauge("ready_batches", "Batches that are ready for the loop.", func(r *pb.RankStatus) *float64 { return pointerTo(float64(r.Ready)) }),
		counter("batches_total", "Batches delivered.", (*pb.Effort).GetBatches),
		counter("samples_total", "Samples delivered.", (*pb.Effort).GetSamples),
		counter("extra_samples_total", "Samples that nodes made and that were not used.", (*pb.Effort).GetExtra),
		counter("hedges_total", "Second nodes that were asked for a batch that one is slow with.", (*pb.Effort).GetHedges),
		counter("won_hedges_total", "Second nodes that were first.", (*pb.Effort).GetHedgesWon),
		counter("moved_wants_total", "Wants taken from a node that had not begun with them.", (*pb.Effort).GetMoves),
		counter("missed_deadlines_total", "Deadlines that nodes missed.", (*pb.Effort).GetMissed),
	}
}

func pointerTo(v float64) *float64 { return &v }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.info, m.loaders, m.nodes} {
		ch <- d
	}
	for _, one := range m.ranks {
		ch <- one.desc
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	state := m.watcher.Next(time.Now())
	m.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.info, 1, m.agent.options.Version)
	gauge(m.loaders, float64(len(m.agent.openLoaders())))
	counts := map[string]int{}
	for _, n := range state.Nodes {
		counts[n.State]++
	}
	for _, s := range nodeStates {
		gauge(m.nodes, float64(counts[s]), s)
	}
	m.collectRanks(ch, state.Jobs)
}

// collectRanks tells of the first ranks, each name once.
func (m *metrics) collectRanks(ch chan<- prometheus.Metric, jobs []*pb.JobStatus) {
	told := map[[3]string]bool{}
	for _, j := range jobs {
		for _, r := range j.Ranks {
			labels := [3]string{j.Job, fmt.Sprintf("%.12s", j.Plan), strconv.FormatUint(uint64(r.Rank), 10)}
			if told[labels] || len(told) == maxRankMetrics {
				continue
			}
			told[labels] = true
			for _, one := range m.ranks {
				if v := one.value(r); v != nil {
					ch <- prometheus.MustNewConstMetric(one.desc, one.kind, *v, labels[:]...)
				}
			}
		}
	}
}
