// Package metrics tells Prometheus of jobs what Watch tells people.
package metrics

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
	rules "github.com/feedwater-io/feedwater/watch/verdict"
)

// maxJobMetrics bounds the series that names chosen by trainers can make: the jobs that waste most.
const maxJobMetrics = 50

// jobMetrics tells Prometheus of jobs what Watch tells people. What is unknown has no sample.
type jobMetrics struct {
	all   []jobMetric
	count *prometheus.Desc

	mu      sync.Mutex
	watcher *watch.Watcher
}

// jobMetric is one number of a job; nil: unknown.
type jobMetric struct {
	desc  *prometheus.Desc
	value func(*pb.JobStatus) *float64
}

// NewJobs returns what Prometheus is told of the jobs of a source.
func NewJobs(s *watch.Source) prometheus.Collector {
	one := func(name, help string, value func(*pb.JobStatus) *float64) jobMetric {
		return jobMetric{prometheus.NewDesc("feedwater_job_"+name, help, []string{"run", "plan"}, nil), value}
	}
	return &jobMetrics{
		watcher: s.NewWatcher(time.Now()),
		count:   prometheus.NewDesc("feedwater_jobs", "Jobs that this node hears.", nil, nil),
		all: []jobMetric{
			one("gpus", "Ranks that the job has.", func(j *pb.JobStatus) *float64 { return pointerTo(float64(j.World)) }),
			one("ranks_heard", "Ranks of the job that talk to this node.", func(j *pb.JobStatus) *float64 { return pointerTo(float64(len(j.Ranks))) }),
			one("idle_ratio", "Share of the step that the GPUs stand still for data, mean over ranks.", func(j *pb.JobStatus) *float64 { return j.Idle }),
			one("wait_ratio", "Share of the step that the loops are blocked in next, mean over ranks.", func(j *pb.JobStatus) *float64 { return j.Wait }),
			one("wait_worst_ratio", "Share of the step that the loop of the worst rank is blocked in next.", worstWait),
			one("wasted_gpus", "GPUs that stand still for data.", wastedGPUs),
			one("supply_samples_per_second", "Samples that the job gets.", func(j *pb.JobStatus) *float64 { return j.Supply }),
			one("demand_samples_per_second", "Samples that the job would take if data were always ready.", func(j *pb.JobStatus) *float64 { return j.Demand }),
			one("nodes_wanted", "Nodes that would feed the job.", func(j *pb.JobStatus) *float64 {
				if j.NodesWanted == nil {
					return nil
				}
				return pointerTo(float64(*j.NodesWanted))
			}),
			one("data_bound", "1 if data holds the job up, 0 if not.", dataBound),
		},
	}
}

func pointerTo(v float64) *float64 { return &v }

func wastedGPUs(j *pb.JobStatus) *float64 {
	if j.Idle == nil {
		return nil
	}
	return pointerTo(pulse.WastedGPUs(j))
}

func worstWait(j *pb.JobStatus) *float64 {
	if j.Wait == nil {
		return nil
	}
	worst := 0.0
	for _, r := range j.Ranks {
		worst = max(worst, r.Wait)
	}
	return &worst
}

func dataBound(j *pb.JobStatus) *float64 {
	if j.Verdict == rules.Unknown {
		return nil
	}
	if j.Verdict == rules.DataBound {
		return pointerTo(1)
	}
	return pointerTo(0)
}

// Describe implements prometheus.Collector.
func (m *jobMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.count
	for _, one := range m.all {
		ch <- one.desc
	}
}

// Collect implements prometheus.Collector.
func (m *jobMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	jobs := m.watcher.Next(time.Now()).Jobs
	m.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, float64(len(jobs)))
	type series struct{ run, plan string }
	told := map[series]bool{}
	for _, j := range jobs[:min(len(jobs), maxJobMetrics)] {
		labels := series{j.Job, fmt.Sprintf("%.12s", j.Plan)}
		if told[labels] {
			continue
		}
		told[labels] = true
		for _, one := range m.all {
			if v := one.value(j); v != nil {
				ch <- prometheus.MustNewConstMetric(one.desc, prometheus.GaugeValue, *v, labels.run, labels.plan)
			}
		}
	}
}
