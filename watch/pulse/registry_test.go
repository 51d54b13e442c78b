package pulse_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func step(number uint64, seconds, wait float64) *pb.Step {
	return &pb.Step{Number: number, Step: seconds, Wait: wait}
}

func only(t *testing.T, b *pulse.Registry, now time.Time) pulse.Rank {
	t.Helper()
	jobs := b.Jobs(now)
	if len(jobs) != 1 || len(jobs[0].Ranks) != 1 {
		t.Fatalf("jobs %+v", jobs)
	}
	return jobs[0].Ranks[0]
}

func TestBookKeepsTheLatestSteps(t *testing.T) {
	var b pulse.Registry
	l := b.OpenSession("job", "plan", start)
	for i := range 2 * pulse.KeptSteps {
		now := start.Add(time.Duration(i) * time.Second)
		l.Report(&pb.Pulse{World: 1, Steps: []*pb.Step{step(uint64(i), 0.5, 0.1)}}, now)
	}
	r := only(t, &b, start)
	if n := len(r.Steps); n != pulse.KeptSteps || r.Steps[0].Number != pulse.KeptSteps || r.Steps[n-1].Number != 2*pulse.KeptSteps-1 {
		t.Errorf("%d steps, %d to %d", n, r.Steps[0].Number, r.Steps[n-1].Number)
	}
	l.Report(&pb.Pulse{World: 1, Steps: []*pb.Step{step(3, 0.5, 0.1)}}, start.Add(time.Hour))
	if r := only(t, &b, start); len(r.Steps) != 1 || r.Steps[0].Number != 3 {
		t.Errorf("a run that began again has %d steps", len(r.Steps))
	}
}

// Whatever is told, nothing but plausible numbers come out, and unknown stays unknown.
func TestBookTakesNoNonsense(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var b pulse.Registry
	l := b.OpenSession("job", "plan", start)
	bad := []*pb.Step{step(1, nan, 0), step(2, inf, 0), step(3, -1, 0), step(4, 0, 0), step(5, 1e300, 0), step(6, 1, -1), step(7, 1, nan), nil}
	good := []*pb.Step{
		{Number: 10, Step: 1, Wait: 5, Idle: proto.Float64(inf), Transfer: proto.Float64(nan)},
		{Number: 11, Step: 1, Wait: 0.5, Idle: proto.Float64(7), Transfer: proto.Float64(-1)},
		{Number: 12, Step: 1, Wait: 0.5, Idle: proto.Float64(0)},
	}
	l.Report(&pb.Pulse{World: 1, Steps: append(bad, good...), Blocked: durationpb.New(-time.Hour)}, start)
	r := only(t, &b, start)
	if len(r.Steps) != 3 || r.Blocked != 0 {
		t.Fatalf("steps %+v, blocked %s", r.Steps, r.Blocked)
	}
	if s := r.Steps[0]; s.Wait != 1 || !math.IsNaN(s.Idle) || !math.IsNaN(s.Transfer) {
		t.Errorf("%+v", s)
	}
	if s := r.Steps[1]; s.Idle != 0.5 || !math.IsNaN(s.Transfer) {
		t.Errorf("%+v", s)
	}
	if s := r.Steps[2]; s.Idle != 0 || !math.IsNaN(s.Transfer) {
		t.Errorf("%+v", s)
	}
}

// A stream has one rank's room, whatever it tells and however often.
func TestBookIsBounded(t *testing.T) {
	var b pulse.Registry
	l := b.OpenSession(strings.Repeat("long\x1b[2J ", 100), "plan", start)
	many := make([]*pb.Step, 5000)
	for i := range many {
		many[i] = step(uint64(i), 1, 0)
	}
	for rank := range uint32(100) {
		l.Report(&pb.Pulse{Rank: rank, World: 1000, Steps: many, Host: strings.Repeat("\n", 1000)}, start.Add(time.Duration(rank)*time.Second))
	}
	r := only(t, &b, start)
	if len(r.Steps) != pulse.KeptSteps || len(r.Host) > 512 || strings.ContainsAny(r.Host, "\n") {
		t.Errorf("%d steps, host %q", len(r.Steps), r.Host)
	}
	if name := b.Jobs(start)[0].Name; len(name) > 512 || strings.Contains(name, "\x1b") {
		t.Errorf("name %q", name)
	}
	l.Report(&pb.Pulse{Rank: 1000, World: 1000}, start.Add(time.Hour))
	l.Report(&pb.Pulse{Rank: 5, World: 7}, start.Add(99*time.Second+time.Millisecond)) // too soon
	if r := only(t, &b, start); r.Rank != 99 {
		t.Errorf("rank %d", r.Rank)
	}
	for range 3000 {
		b.OpenSession("other", "plan", start).End(start)
	}
	left := 0
	b.OpenSession("other", "plan", start)
	for _, j := range b.Jobs(start) {
		left += len(j.Ranks)
	}
	if left > 1100 {
		t.Errorf("%d lines kept", left)
	}
}

func TestBookTellsJobsAndRanks(t *testing.T) {
	var b pulse.Registry
	lines := []*pulse.Session{b.OpenSession("a", "1", start), b.OpenSession("a", "1", start), b.OpenSession("a", "2", start), b.OpenSession("b", "1", start)}
	for i, l := range lines[:2] {
		l.Report(&pb.Pulse{Rank: uint32(i), World: 2, Steps: []*pb.Step{step(1, 1, 0)}}, start)
	}
	jobs := b.Jobs(start)
	if len(jobs) != 3 || jobs[0].World != 2 || len(jobs[0].Ranks) != 2 || jobs[2].Name != "b" {
		t.Fatalf("jobs %+v", jobs)
	}
	// A stream that broke is followed by another one: one rank still.
	lines[1].End(start)
	again := b.OpenSession("a", "1", start)
	again.Report(&pb.Pulse{Rank: 1, World: 2}, start.Add(time.Second))
	if ranks := b.Jobs(start)[0].Ranks; len(ranks) != 2 || ranks[1].Left {
		t.Errorf("ranks %+v", ranks)
	}
	for _, l := range append(lines, again) {
		l.End(start)
	}
	if jobs := b.Jobs(start); len(jobs) != 0 {
		t.Errorf("jobs %+v", jobs)
	}
}

func TestNilLine(*testing.T) {
	var l *pulse.Session
	l.Report(&pb.Pulse{}, start)
	l.End(start)
}

// What a trainer costs that comes and goes all the time does not grow with those that did before.
func BenchmarkEnterAndLeave(b *testing.B) {
	var book pulse.Registry
	for b.Loop() {
		book.OpenSession("job", "plan", start).End(start)
	}
}

// Jobs that cannot be are not told of: they would come first wherever jobs are sorted by what they waste.
func TestImpossiblePulses(t *testing.T) {
	for _, p := range []*pb.Pulse{
		{World: math.MaxUint32, Samples: 8}, {World: 1<<16 + 1}, {World: 1, Samples: math.MaxUint32}, {World: 1 << 16, Samples: 1<<14 + 1},
	} {
		var b pulse.Registry
		l := b.OpenSession("job", "plan", start)
		p.Steps = []*pb.Step{step(1, 0.5, 0.1)}
		l.Report(p, start)
		if s := b.Jobs(start)[0].Status(start); s.World != 1 || s.Supply != nil || s.Wait != nil {
			t.Errorf("%v: %v", p, s)
		}
	}
	var b pulse.Registry
	b.OpenSession("job", "plan", start).Report(&pb.Pulse{World: 1 << 16, Samples: 1 << 14, Steps: []*pb.Step{step(1, 0.5, 0.1)}}, start)
	if s := b.Jobs(start)[0].Status(start); s.World != 1<<16 || s.Supply == nil {
		t.Errorf("the largest job that can be: %v", s)
	}
}

// What a node spends on a pulse does not grow with the trainers that it hears.
func BenchmarkTell(b *testing.B) {
	var book pulse.Registry
	var lines []*pulse.Session
	for range 256 {
		lines = append(lines, book.OpenSession("job", "plan", start))
	}
	now := start
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Millisecond)
		p := &pb.Pulse{Rank: uint32(i % 256), World: 256, Steps: []*pb.Step{step(uint64(i), 0.1, 0), step(uint64(i+1), 0.1, 0)}}
		lines[i%256].Report(p, now)
	}
}
