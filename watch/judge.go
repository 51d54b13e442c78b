package watch

import (
	"math"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch/verdict"
)

// judgeJob writes what verdict says of a job into it.
func judgeJob(job *pb.JobStatus, steps int, nodes verdict.Nodes, f verdict.Facts) {
	f.Steps, f.Wait, f.Idle, f.Nodes, f.Wanted = steps, valueOrNaN(job.Wait), valueOrNaN(job.Idle), nodes, int(job.GetNodesWanted())
	f.IdleUnmeasured = job.GetIdleUnmeasured()
	for _, r := range job.Ranks {
		f.Blocked = max(f.Blocked, r.GetBlocked().AsDuration().Seconds())
	}
	v := verdict.Judge(f)
	job.Verdict, job.Cause, job.Action = v.Verdict, v.Cause, v.Action
}

// machineFacts of a machine: of a trainer's, if trainer is set.
func machineFacts(r *pb.WatchResponse, trainer bool) verdict.Facts {
	f := verdict.Facts{GPUBusy: meanBusy(r.Gpus), HostBusy: math.NaN()}
	if trainer {
		f.HostBusy = valueOrNaN(r.Process.HostBusy)
	}
	return f
}

// Local is the address of the node that is the agent's own process.
const Local = "this process"

// sumPool sums the nodes up that a process knows.
func (s *Source) sumPool(r *pb.WatchResponse) verdict.Nodes {
	n := sumNodes(r.Nodes)
	n.Partial = s.options.Kind == "node"
	n.Local = !n.Partial && len(r.Nodes) == 1 && r.Nodes[0].Addr == Local
	if n.Partial || n.Local { // its own cores are the ones that make batches
		n.IOWait = valueOrNaN(r.Process.HostIoWait)
	}
	if n.Local && math.IsNaN(n.Busy) {
		n.Busy = min(r.Process.BusyCores/max(n.Cores, 1), 1)
	}
	return n
}

// sumNodes sums nodes up. Busy is of those that tell for how long their cores had work in hand, which on a shared
// machine is more than the CPU time they got.
func sumNodes(nodes []*pb.NodeStatus) verdict.Nodes {
	n := verdict.Nodes{All: len(nodes), Busy: math.NaN(), Full: math.NaN(), Read: math.NaN(), IOWait: math.NaN(), MissingCopies: math.NaN()}
	full, read, reading, busy, cores, missing, telling := 0, 0.0, 0, 0.0, 0.0, 0.0, 0
	for _, node := range nodes {
		if node.State != "ready" {
			n.Trouble = node.Addr + " " + node.State
			if node.Error != "" {
				n.Trouble += ": " + node.Error
			}
			continue
		}
		n.Ready++
		n.Cores += node.Cores
		if node.Queued > 0 && node.Wants > 0 {
			full++
		}
		if node.EffectiveCores != nil {
			busy, cores = busy+*node.EffectiveCores, cores+node.Cores
		}
		if node.Read != nil {
			read, reading = read+*node.Read, reading+1
		}
		if node.MissingCopies != nil {
			missing, telling = missing+*node.MissingCopies, telling+1
		}
	}
	if n.Ready > 0 {
		n.Full = float64(full) / float64(n.Ready)
	}
	if cores > 0 {
		n.Busy = min(busy/cores, 1)
	}
	if reading > 0 {
		n.Read = read / float64(reading)
	}
	if telling > 0 {
		n.MissingCopies = missing / float64(telling)
	}
	return n
}

func valueOrNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// meanBusy is the share of time in which GPUs run kernels; NaN unless all tell.
func meanBusy(gpus []*pb.GpuStatus) float64 {
	sum := 0.0
	for _, g := range gpus {
		sum += valueOrNaN(g.Busy)
	}
	return sum / float64(len(gpus)) // 0/0 is not a number
}
