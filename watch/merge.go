package watch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/pulse"
	"github.com/feedwater-io/feedwater/watch/verdict"
)

// Overview is what several processes tell, put together: of each job all ranks, of each node what it says of itself and
// what trainers see of it.
type Overview struct {
	Time      time.Time
	Processes []*pb.Process
	Jobs      []*pb.JobStatus
	Nodes     []*pb.NodeStatus
	Gpus      []*pb.GpuStatus
	// Errors are of processes that were asked and tell nothing.
	Errors []TargetError
}

// ProcessState is the latest state of one process. Addr is where it was reached.
type ProcessState struct {
	Addr  string
	State *pb.WatchResponse
	// Error is why there is no state, in words; Heard that there was one.
	Error string
	Heard bool
}

// Merge puts states together. It takes them over.
func Merge(all []ProcessState, now time.Time) *Overview {
	p := &Overview{Time: now}
	for _, t := range all {
		if t.State.GetProcess() == nil {
			continue
		}
		p.Processes = append(p.Processes, t.State.Process)
		p.Gpus = append(p.Gpus, t.State.Gpus...)
		for _, n := range t.State.Nodes {
			if n.Addr == "" { // itself
				n.Addr = t.Addr
			}
			if n.Addr == Local {
				n.Addr = "local on " + t.State.Process.Host
			}
			p.addNode(n)
		}
	}
	for _, t := range all {
		if t.Error != "" {
			p.addSilent(t)
		}
	}
	for _, t := range all {
		for _, j := range t.State.GetJobs() {
			p.addJob(j)
		}
	}
	if len(p.Processes) > 1 {
		p.judgeJobs(all)
	}
	pulse.SortByWaste(p.Jobs)
	slices.SortFunc(p.Nodes, func(a, b *pb.NodeStatus) int { return cmp.Compare(a.Addr, b.Addr) })
	return p
}

// addNode adds a node, or what else is told of it: it knows its own load, trainers know whether it answers.
func (p *Overview) addNode(n *pb.NodeStatus) {
	i := slices.IndexFunc(p.Nodes, func(o *pb.NodeStatus) bool { return o.Addr == n.Addr })
	if i < 0 {
		p.Nodes = append(p.Nodes, n)
		return
	}
	known, other := p.Nodes[i], n
	if n.EffectiveCores != nil || n.Read != nil {
		known, other = n, known
		p.Nodes[i] = n
	}
	if known.State == "ready" && other.State != "ready" {
		known.State, known.Error = other.State, other.Error
	}
}

// addSilent adds a process that tells nothing: a node that did before stays a node, what is not known to be one is an
// error. Where a trainer has told what is wrong with it, once is enough; where trainers are served by it, it is not
// down.
func (p *Overview) addSilent(t ProcessState) {
	i := slices.IndexFunc(p.Nodes, func(n *pb.NodeStatus) bool { return n.Addr == t.Addr })
	switch {
	case i < 0 && t.Heard:
		p.Nodes = append(p.Nodes, &pb.NodeStatus{Addr: t.Addr, State: "silent", Error: t.Error})
	case i < 0 || p.Nodes[i].State == "ready" || p.Nodes[i].Error == "":
		p.Errors = append(p.Errors, TargetError{Addr: t.Addr, Error: t.Error})
	}
}

// isSameJob reports whether two processes tell of one job: names are chosen by people, and a training and its
// evaluation may have one.
func isSameJob(a, b *pb.JobStatus) bool { return a.Job == b.Job && a.Plan == b.Plan }

// Title names a job to people: with a part of its plan where another one has the same name.
func (p *Overview) Title(j *pb.JobStatus) string {
	if slices.ContainsFunc(p.Jobs, func(o *pb.JobStatus) bool { return o.Job == j.Job && o.Plan != j.Plan }) {
		return fmt.Sprintf("%s #%.4s", j.Job, j.Plan)
	}
	return j.Job
}

// addJob adds a job, or its further ranks. Who hears most ranks knows best.
func (p *Overview) addJob(j *pb.JobStatus) {
	i := slices.IndexFunc(p.Jobs, func(o *pb.JobStatus) bool { return isSameJob(o, j) })
	if i < 0 {
		p.Jobs = append(p.Jobs, j)
		return
	}
	best, other := p.Jobs[i], j
	if len(j.Ranks) > len(best.Ranks) {
		best, other = j, best
	}
	p.Jobs[i] = best
	best.Nodes = max(best.Nodes, other.Nodes)
	if best.NodesWanted == nil {
		best.NodesWanted, best.UpperBound = other.NodesWanted, other.UpperBound
	}
	for _, r := range other.Ranks {
		k := slices.IndexFunc(best.Ranks, func(o *pb.RankStatus) bool { return o.Rank == r.Rank })
		switch {
		case k < 0:
			best.Ranks = append(best.Ranks, r)
		case len(best.Ranks[k].Attempts) == 0:
			best.Ranks[k].Attempts, best.Ranks[k].Effort = r.Attempts, r.Effort
		}
	}
	slices.SortFunc(best.Ranks, func(a, b *pb.RankStatus) int { return cmp.Compare(a.Rank, b.Rank) })
}

// judgeJobs says anew what is the matter, now that more is known than any process alone does.
func (p *Overview) judgeJobs(all []ProcessState) {
	for _, j := range p.Jobs {
		if j.Verdict == verdict.Unknown {
			continue
		}
		if nodes, f, ok := p.factsOf(j, all); ok {
			judgeJob(j, enough, nodes, f)
		}
	}
}

// factsOf are those of one job: of the hosts and GPUs of agents that tell of it, and of the nodes that tell of it or
// that those agents have. ok is false where no such node says how it is itself; the job's own agent has said all then.
func (p *Overview) factsOf(job *pb.JobStatus, all []ProcessState) (nodes verdict.Nodes, f verdict.Facts, ok bool) {
	its := map[string]bool{}
	var gpus []*pb.GpuStatus
	partial, hostBusy, ioWait := true, math.NaN(), math.NaN()
	for _, t := range all {
		if !t.tellsOf(job) {
			continue
		}
		for _, n := range t.State.Nodes {
			its[n.Addr] = true
		}
		if t.State.Process.Kind != "node" {
			partial, hostBusy, gpus = false, largerOf(hostBusy, t.State.Process.HostBusy), append(gpus, t.State.Gpus...)
		}
	}
	for _, t := range all {
		if its[t.Addr] && t.State.GetProcess().GetKind() == "node" {
			ok, ioWait = true, largerOf(ioWait, t.State.Process.HostIoWait)
		}
	}
	nodes = sumNodes(slices.DeleteFunc(slices.Clone(p.Nodes), func(n *pb.NodeStatus) bool { return !its[n.Addr] }))
	nodes.Partial, nodes.IOWait = partial, ioWait
	return nodes, verdict.Facts{GPUBusy: meanBusy(gpus), HostBusy: hostBusy}, ok
}

// tellsOf reports whether a process has told of a job.
func (t ProcessState) tellsOf(job *pb.JobStatus) bool {
	return t.State.GetProcess() != nil && slices.ContainsFunc(t.State.Jobs, func(j *pb.JobStatus) bool { return isSameJob(j, job) })
}

// enough is a number of steps that tells something, for jobs whose teller had that many.
const enough = 100

func largerOf(a float64, b *float64) float64 {
	if b != nil && !(a >= *b) {
		return *b
	}
	return a
}
