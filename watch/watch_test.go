package watch_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
	"github.com/feedwater-io/feedwater/watch/verdict"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// state is what a process tells whose trainers starve, with nodes as they are given.
func state(kind string, ranks, world uint32, nodes ...*pb.NodeStatus) *pb.WatchResponse {
	var b pulse.Registry
	for rank := range ranks {
		steps := make([]*pb.Step, 50)
		for i := range steps {
			steps[i] = &pb.Step{Number: uint64(i), Step: 0.2, Wait: 0.1, Idle: proto.Float64(0.08)}
		}
		b.OpenSession("job", "plan", start).Report(&pb.Pulse{Rank: rank, World: world, Samples: 8, Steps: steps}, start)
	}
	s := watch.New(watch.Options{Kind: kind, Cores: 4, Registry: &b, Nodes: func(time.Time) func(time.Time) []*pb.NodeStatus {
		return func(time.Time) []*pb.NodeStatus { return nodes }
	}})
	return s.NewWatcher(start).Next(start)
}

func node(addr, condition string, busy float64) *pb.NodeStatus {
	n := &pb.NodeStatus{Addr: addr, State: condition, Cores: 4}
	if busy >= 0 {
		n.EffectiveCores, n.Read = &busy, proto.Float64(0.01)
	}
	return n
}

func TestNextJudges(t *testing.T) {
	for name, c := range map[string]struct {
		state  *pb.WatchResponse
		cause  string
		action string
	}{
		"a node alone":      {state("node", 2, 2, node("", "ready", 4)), "node CPU: 4.0 of 4 cores", "×1.9 the nodes"},
		"an agent, its own": {state("agent", 1, 1, node(watch.Local, "ready", 4)), "this host's CPU: 4.0 of 4 cores", "4 → 8"},
		"a node that rests": {state("node", 2, 2, node("", "ready", 1)), "the way between", "network"},
		"one down":          {state("agent", 1, 1, node("a", "ready", 1), node("b", "failed", -1)), "only 1 of 2 nodes take work: b failed", "bring"},
	} {
		j := c.state.Jobs[0]
		if j.Verdict != verdict.DataBound || !strings.Contains(j.Cause, c.cause) || !strings.Contains(j.Action, c.action) {
			t.Errorf("%s: %s, cause %q, do %q", name, j.Verdict, j.Cause, j.Action)
		}
	}
}

// A node knows its load and all ranks, agents know whether nodes answer and what became of wants: together they know
// more.
func TestMerge(t *testing.T) {
	agent := state("agent", 1, 2, node("a:1", "ready", -1), node("b:1", "silent", -1))
	agent.Jobs[0].Ranks[0].Attempts = []*pb.Attempt{{Batch: 7, State: "done"}}
	p := watch.Merge([]watch.ProcessState{{Addr: "a:1", State: state("node", 2, 2, node("", "ready", 3.9))}, {Addr: "unix:/1.sock", State: agent}}, start)
	if len(p.Jobs) != 1 || len(p.Jobs[0].Ranks) != 2 || len(p.Jobs[0].Ranks[0].Attempts) != 1 || p.Jobs[0].Nodes != 1 {
		t.Errorf("jobs %v", p.Jobs)
	}
	if len(p.Nodes) != 2 || p.Nodes[0].EffectiveCores == nil || p.Nodes[1].State != "silent" {
		t.Errorf("nodes %v", p.Nodes)
	}
	if j := p.Jobs[0]; !strings.Contains(j.Cause, "node CPU: 3.9 of 4 cores") || !strings.Contains(j.Action, "1 → 2 nodes") {
		t.Errorf("cause %q, do %q", j.Cause, j.Action)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Jobs []struct {
			Idle, Wait, Supply float64
			Verdict            string
		}
		Nodes []map[string]any
	}
	if err := json.Unmarshal(text, &back); err != nil || len(back.Jobs) != 1 || back.Jobs[0].Idle < 0.39 || back.Jobs[0].Verdict != verdict.DataBound {
		t.Errorf("%v in JSON: %s", err, text)
	}
	if _, known := back.Nodes[1]["effective_cores"]; known {
		t.Error("what is unknown has a value in JSON")
	}
}

func TestMergeOfNothing(t *testing.T) {
	p := watch.Merge([]watch.ProcessState{{Addr: "a"}, {Addr: "b", State: &pb.WatchResponse{}}}, start)
	if text, err := json.Marshal(p); err != nil || !strings.Contains(string(text), `"jobs":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// GPUs that stand still while no loop waits: no more nodes are asked for, and people are told that it is not the data.
func TestIdleWithoutWait(t *testing.T) {
	var b pulse.Registry
	steps := make([]*pb.Step, 50)
	for i := range steps {
		steps[i] = &pb.Step{Number: uint64(i), Step: 0.2, Idle: proto.Float64(0.15)}
	}
	b.OpenSession("job", "plan", start).Report(&pb.Pulse{World: 1, Samples: 8, Steps: steps}, start)
	s := watch.New(watch.Options{
		Kind: "agent", Registry: &b,
		Nodes: func(time.Time) func(time.Time) []*pb.NodeStatus {
			return func(time.Time) []*pb.NodeStatus { return []*pb.NodeStatus{node("a", "ready", 1)} }
		},
		GPUs: func() []*pb.GpuStatus { return []*pb.GpuStatus{{Busy: proto.Float64(0.25)}} },
	})
	j := s.NewWatcher(start).Next(start).Jobs[0]
	if j.Verdict != verdict.NotData || !strings.Contains(j.Cause, "busy 25 % of the time, but not for want of data") || j.GetIdle() != 0 {
		t.Errorf("%v", j)
	}
	if j.GetDemand() != j.GetSupply() {
		t.Errorf("it would take %v images a second, and gets %v", j.GetDemand(), j.GetSupply())
	}
}
