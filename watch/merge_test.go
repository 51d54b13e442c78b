package watch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// of is a state with its job, host and GPU told of by other names and figures.
func of(job string, host, gpu float64, s *pb.WatchResponse) *pb.WatchResponse {
	s.Jobs[0].Job = job
	s.Process.HostBusy, s.Process.HostIoWait = &host, proto.Float64(0)
	if gpu >= 0 {
		s.Gpus = []*pb.GpuStatus{{Busy: &gpu}}
	}
	return s
}

// Each job is judged by its own nodes and hosts: another's nodes that are busy or down, and another's host, are none of
// its causes.
func TestMergeJudgesEachJobByItsOwn(t *testing.T) {
	p := watch.Merge([]watch.ProcessState{
		{Addr: "a:1", State: of("rests", 0.1, -1, state("node", 1, 1, node("", "ready", 0.5)))},
		{Addr: "unix:/rests", State: of("rests", 0.2, 0.5, state("agent", 1, 1, node("a:1", "ready", -1)))},
		{Addr: "b:1", State: of("busy", 0.9, -1, state("node", 1, 1, node("", "ready", 3.9)))},
		{Addr: "unix:/busy", State: of("busy", 0.99, 0.5, state("agent", 1, 1, node("b:1", "ready", -1), node("c:1", "failed", -1)))},
		{Addr: "d:1", State: of("alone", 0.9, -1, state("node", 1, 1, node("", "ready", 0.5)))},
		{Addr: "unix:/down", State: of("down", 0.1, 0.5, state("agent", 1, 1, node("d:1", "ready", -1), node("e:1", "failed", -1)))},
	}, start)
	want := map[string]string{
		"rests": "the way between", "busy": "node CPU: 3.9 of 4 cores", "alone": "the way between", "down": "only 1 of 2 nodes take work: e:1 failed",
	}
	for _, j := range p.Jobs {
		if !strings.Contains(j.Cause, want[j.Job]) {
			t.Errorf("%s: cause %q, do %q, want %q", j.Job, j.Cause, j.Action, want[j.Job])
		}
	}
	if len(p.Jobs) != len(want) {
		t.Errorf("jobs %v", p.Jobs)
	}
}

// pair is what a process tells of two plans under one name, with one rank of world each; either may be missing.
func pair(kind string, plans ...string) *pb.WatchResponse {
	var b pulse.Registry
	for _, plan := range plans {
		b.OpenSession("rn50", plan, start).Report(&pb.Pulse{World: 1, Samples: 8, Steps: []*pb.Step{{Step: 0.2, Wait: 0.1}}}, start)
	}
	s := watch.New(watch.Options{Kind: kind, Registry: &b, Nodes: func(time.Time) func(time.Time) []*pb.NodeStatus {
		return func(time.Time) []*pb.NodeStatus { return nil }
	}})
	return s.NewWatcher(start).Next(start)
}

// A job keeps its name whatever else has that name, and processes that hear different plans of one name do not mix them
// up.
func TestNamesDoNotDependOnNeighbours(t *testing.T) {
	const training, evaluation = "ffff-training", "aaaa-evaluation"
	for _, j := range pair("node", evaluation, training).Jobs {
		if j.Job != "rn50" || j.Plan != training && j.Plan != evaluation {
			t.Errorf("beside another plan it is named %q, plan %q", j.Job, j.Plan)
		}
	}
	p := watch.Merge([]watch.ProcessState{{Addr: "a:1", State: pair("node", training)}, {Addr: "b:1", State: pair("node", evaluation, training)}, {Addr: "c:1", State: pair("node", evaluation)}}, start)
	var titles []string
	for _, j := range p.Jobs {
		titles = append(titles, p.Title(j))
	}
	if !slices.Equal(titles, []string{"rn50 #aaaa", "rn50 #ffff"}) {
		t.Errorf("jobs %q", titles)
	}
	if p = watch.Merge([]watch.ProcessState{{Addr: "a:1", State: pair("node", training)}}, start); p.Title(p.Jobs[0]) != "rn50" {
		t.Errorf("alone it is %q", p.Title(p.Jobs[0]))
	}
}
