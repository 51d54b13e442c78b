package server

import (
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// wantedEvery is the time over which a node's own speed is measured.
const wantedEvery = 15 * time.Second

// wanted reads off pulses and this node's own speed how many nodes like this one would feed its jobs. It is measured when somebody asks.
type wanted struct {
	mu     sync.Mutex
	scaler control.Scaler
	at     time.Time
	work   pipeline.Work
	answer control.Wanted
}

// Wanted is how many nodes like this one would feed all the jobs that have streams here.
func (s *Server) Wanted() control.Wanted {
	w, now := &s.wanted, time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && now.Sub(w.at) < wantedEvery {
		return w.answer
	}
	var readings []control.Reading
	for _, j := range s.book.Jobs(now) {
		readings = append(readings, s.readDemand(&j))
	}
	work := s.engine.Work()
	load := control.Load{
		Cores: float64(s.engine.Workers()), CoreSeconds: work.CoreSeconds - w.work.CoreSeconds, BusySeconds: work.BusySeconds - w.work.BusySeconds,
	}
	seconds := wantedEvery.Seconds()
	if !w.at.IsZero() {
		seconds = now.Sub(w.at).Seconds()
	}
	w.answer = w.scaler.Tick(seconds, readings, []control.Load{load}, -1)
	w.at, w.work = now, work
	return w.answer
}

// readDemand is a job's demand, and what this node spends on its samples.
func (s *Server) readDemand(j *pulse.Job) control.Reading {
	r := j.Reading()
	r.Cost = s.shares.CostOf(j.Name, j.Plan)
	return r
}

// nodesWantedOf is how many nodes like this one would feed a job, and for how many seconds this one works on a sample of it; 0: unknown. upperBound
// tells that it may be fewer, or more than there are if nothing else is known: no step of the job ends for want of data, while this node has
// work in its queue.
func (s *Server) nodesWantedOf(j pulse.Job) (nodes int, seconds float64, upperBound bool) {
	r, effective := s.readDemand(&j), s.Wanted().Effective
	if effective > 0 {
		seconds = r.Cost / effective
	}
	return r.Nodes(effective), seconds, r.UpperBound || r.Starved && s.engine.Queued() > 0
}

// nodesWanted is for the metric; false: unknown.
func (s *Server) nodesWanted() (nodes float64, ok bool) {
	w := s.Wanted()
	return float64(w.Nodes), w.Effective != 0
}

// effectiveCores is the core-seconds that the node does in a second with work at hand, as it was measured last; its cores until then.
func (s *Server) effectiveCores() float64 {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	if e := s.wanted.answer.Effective; e > 0 {
		return e
	}
	return float64(max(s.engine.Workers(), 1))
}
