// Package demand says how many nodes like this one would feed the jobs that have streams here. It reads that off what
// trainers tell of their steps, and off this node's own speed, which is measured when somebody asks.
package demand

import (
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// period is the time over which a node's own speed is measured.
const period = 15 * time.Second

// Engine is what makes a node's batches.
type Engine interface {
	// Workers is how many samples are made at once.
	Workers() int
	// Queued is the core-seconds of work that is queued.
	Queued() float64
	// Work is what was done since the start.
	Work() pipeline.Work
}

// Meter measures the demand. Its methods may be called from many goroutines at once. It is not to be copied after its
// first use.
type Meter struct {
	engine Engine
	jobs   *pulse.Registry
	runs   *runs.Registry

	mu     sync.Mutex
	scaler control.Scaler
	at     time.Time
	work   pipeline.Work
	answer control.Wanted
}

// NewMeter returns a meter of an engine for jobs and what runs cost here.
func NewMeter(e Engine, jobs *pulse.Registry, costs *runs.Registry) *Meter {
	return &Meter{engine: e, jobs: jobs, runs: costs}
}

// Wanted is how many nodes like this one would feed all the jobs.
func (m *Meter) Wanted() control.Wanted {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && now.Sub(m.at) < period {
		return m.answer
	}
	var readings []control.Reading
	for _, j := range m.jobs.Jobs(now) {
		readings = append(readings, m.readJob(&j))
	}
	work := m.engine.Work()
	load := control.Load{
		Cores:       float64(m.engine.Workers()),
		CoreSeconds: work.CoreSeconds - m.work.CoreSeconds, BusySeconds: work.BusySeconds - m.work.BusySeconds,
	}
	seconds := period.Seconds()
	if !m.at.IsZero() {
		seconds = now.Sub(m.at).Seconds()
	}
	m.answer = m.scaler.DecideNodes(seconds, readings, []control.Load{load}, -1)
	m.at, m.work = now, work
	return m.answer
}

// readJob is a job's demand, and what this node spends on its samples.
func (m *Meter) readJob(j *pulse.Job) control.Reading {
	r := j.Reading()
	r.Cost = m.runs.CostOf(j.Name, j.Plan)
	return r
}

// JobNodes is how many nodes like this one would feed a job, and for how many seconds this one works on a sample of it;
// 0: unknown. upperBound tells that it may be fewer, or more than there are if nothing else is known: no step of the
// job ends for want of data, while this node has work in its queue.
func (m *Meter) JobNodes(j pulse.Job) (nodes int, seconds float64, upperBound bool) {
	r, effective := m.readJob(&j), m.Wanted().Effective
	if effective > 0 {
		seconds = r.Cost / effective
	}
	return r.NodesNeeded(effective), seconds, r.UpperBound || r.Starved && m.engine.Queued() > 0
}

// AllNodes is Wanted().Nodes; ok is false while that is unknown.
func (m *Meter) AllNodes() (nodes float64, ok bool) {
	w := m.Wanted()
	return float64(w.Nodes), w.Effective != 0
}

// EffectiveCores is the core-seconds that the node does in a second with work at hand, as it was measured last; its
// cores until then.
func (m *Meter) EffectiveCores() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.answer.Effective; e > 0 {
		return e
	}
	return float64(max(m.engine.Workers(), 1))
}
