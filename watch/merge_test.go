package watch_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
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

// Each job is judged by its own nodes and hosts: another's nodes that are busy or down, and another's host, are none of its causes.
func TestMergeJudgesEachJobByItsOwn(t *testing.T) {
	p := watch.Merge([]watch.Told{
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
