package pulse_test

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestStatus(t *testing.T) {
	var b pulse.Registry
	for rank := range uint32(2) {
		l := b.OpenSession("job", "plan", start)
		var steps []*pb.Step
		for i := range uint64(100) {
			s := &pb.Step{Number: i, Step: 0.2, Wait: 0.1, Idle: proto.Float64(0.05)}
			if rank == 1 {
				s.Idle = nil // has no meter
			}
			if i == 50 {
				s = &pb.Step{Number: i, Step: 60, Wait: 0, Idle: proto.Float64(0)} // an evaluation
			}
			steps = append(steps, s)
		}
		l.Report(&pb.Pulse{Rank: rank, World: 4, Samples: 100, Ready: 2, Window: 16, Steps: steps, IdleUnmeasured: rank == 1}, start)
	}
	job := b.Jobs(start)[0]
	s := job.Status(start.Add(time.Second))
	if !near(s.GetIdle(), 0.25) || !near(s.GetWait(), 0.5) || !near(s.GetSupply(), 2000) {
		t.Errorf("idle %g, wait %g, supply %g", s.GetIdle(), s.GetWait(), s.GetSupply())
	}
	if !near(pulse.WastedGPUs(s), 1) || s.World != 4 || job.Steps() != 99 {
		t.Errorf("wasted %g of %d, %d steps", pulse.WastedGPUs(s), s.World, job.Steps())
	}
	r := s.Ranks[0]
	if r.Step != 99 || !near(r.StepP50, 0.2) || !near(r.WaitP99, 0.1) || r.Idle == nil || s.Ranks[1].Idle != nil || r.Ready != 2 || r.Window != 16 {
		t.Errorf("rank %v", r)
	}
	if !s.IdleUnmeasured {
		t.Error("a rank's GPU cannot be measured, and that is not told")
	}
	if r.Silent != nil || job.Status(start.Add(time.Minute)).Ranks[0].Silent.AsDuration() != time.Minute {
		t.Error("silence is not told, or told too early")
	}
	if late := job.Status(start.Add(time.Minute)); late.Supply != nil {
		t.Errorf("a job that does nothing gets %g samples/s", late.GetSupply())
	}
}

func TestStatusUnknown(t *testing.T) {
	var b pulse.Registry
	l := b.OpenSession("job", "plan", start)
	job := b.Jobs(start)[0]
	if s := job.Status(start); s.Idle != nil || s.Wait != nil || s.Supply != nil || s.Demand != nil || len(s.Ranks) != 1 {
		t.Errorf("known of nothing: %v", s)
	}
	l.Report(&pb.Pulse{World: 1, Blocked: durationpb.New(3 * time.Second)}, start)
	job = b.Jobs(start)[0]
	if d := job.Blocked(start.Add(time.Second)); d != 4*time.Second {
		t.Errorf("blocked for %s", d)
	}
	if d := job.Blocked(start.Add(time.Minute)); d != 0 {
		t.Errorf("blocked for %s, and nothing was heard for a minute", d)
	}
}

func TestSort(t *testing.T) {
	jobs := []*pb.JobStatus{
		{Job: "unknown", World: 8, Wait: proto.Float64(0.1)}, {Job: "little", World: 64, Idle: proto.Float64(0.01)},
		{Job: "most", World: 8, Idle: proto.Float64(0.5)}, {Job: "unknown, worse", World: 8, Wait: proto.Float64(0.9)},
	}
	pulse.SortByWaste(jobs)
	for i, want := range []string{"most", "little", "unknown, worse", "unknown"} {
		if jobs[i].Job != want {
			t.Errorf("place %d: %s, want %s", i, jobs[i].Job, want)
		}
	}
}
