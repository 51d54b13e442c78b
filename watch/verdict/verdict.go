// Package verdict says whether data is why GPUs stand still, what most likely is the reason, and what to do about it.
// It is rules over numbers that others measured: arithmetic only, one place for the terminal view, the page and
// whatever else tells people. Unknown is not a number (NaN), and is never taken for 0.
package verdict

import (
	"fmt"
	"math"
	"strings"
)

// The verdicts.
const (
	Healthy   = "healthy"
	DataBound = "data-bound"
	NotData   = "not-data"
	Unknown   = "unknown"
)

// Facts are what is known of a job. Shares are from 0 to 1, NaN where unknown.
type Facts struct {
	// Steps is how many steps the shares are of.
	Steps int
	// Wait is the share of the step that the loop is blocked in next, Idle the share that the GPU stands still for
	// data.
	Wait, Idle float64
	// IdleUnmeasured: a loop uses a GPU that does not tell its idle.
	IdleUnmeasured bool
	// Blocked is for how many seconds a loop has been blocked in next, now.
	Blocked float64
	// GPUBusy is the share of time in which the GPUs run kernels.
	GPUBusy float64
	// Nodes that make the batches.
	Nodes Nodes
	// Wanted is how many nodes would feed the job, as measured; 0: unknown.
	Wanted int
	// HostBusy is the share of the trainer's own machine's cores that is in use.
	HostBusy float64
}

// Nodes are what makes a job's batches: one or more machines, or the trainer's own.
type Nodes struct {
	// Local: the trainer's own machine makes them.
	Local bool
	// Partial: there may be more nodes than this process knows.
	Partial bool
	// All nodes, and those that take wants.
	All, Ready int
	// Trouble is what is wrong with one that does not.
	Trouble string
	// Cores that the ready ones have, and the share of those that is busy making batches.
	Cores, Busy float64
	// Full is the share of ready nodes that have more work queued than they can begin.
	Full float64
	// Read is the share of workers' time that goes into reading files, IOWait that of cores waiting for storage.
	Read, IOWait float64
	// MissingCopies is the share of pictures that had no copy and could have had one.
	MissingCopies float64
}

// Finding is what people read: the verdict, and one line each for the reason and for what to do. Both may be empty.
type Finding struct{ Verdict, Cause, Action string }

// Judge applies the rules.
func Judge(f Facts) Finding {
	switch {
	case f.Nodes.All > 0 && f.Nodes.Ready == 0 && (f.Blocked >= StuckSeconds || f.Steps < FewSteps):
		return Finding{DataBound, noNode(f.Nodes), "start a node: feedwater serve --data …"}
	case f.Blocked >= StuckSeconds:
		return findCause(f, fmt.Sprintf("blocked in next for %.0f s; ", f.Blocked))
	case f.Steps < FewSteps:
		return Finding{Verdict: Unknown, Cause: fmt.Sprintf("only %d steps so far", f.Steps)}
	case math.IsNaN(f.Idle) && f.IdleUnmeasured && f.Wait >= BoundShare:
		return Finding{Verdict: Unknown, Cause: fmt.Sprintf("next blocks %s of the step, and whether the GPU feels it cannot be measured", percentText(f.Wait))}
	case f.LossShare() >= BoundShare:
		return findCause(f, "")
	case math.IsNaN(f.LossShare()):
		return Finding{Verdict: Unknown}
	}
	return findFed(f)
}

// LossShare is the share of the step that faster data would save: idle, or at most the wait where the GPU tells
// nothing. A GPU does not stand still for data while its loop does not wait.
func (f Facts) LossShare() float64 {
	if !math.IsNaN(f.Idle) {
		return f.Idle
	}
	return f.Wait
}

// findFed is a job whose data is there in time.
func findFed(f Facts) Finding {
	switch {
	case f.GPUBusy < LazyShare: // false if unknown
		return Finding{NotData, fmt.Sprintf("GPUs are busy %s of the time, but not for want of data", percentText(f.GPUBusy)),
			"look at the training step: feedwater.stages(model, optimizer)"}
	case f.Idle >= SlightShare:
		return Finding{Healthy, "GPUs stand still for data " + lossText(f.Idle), ""}
	case math.IsNaN(f.Idle) && f.Wait >= SlightShare:
		return Finding{Healthy, "next blocks " + lossText(f.Wait), ""}
	case f.Wait >= SlightShare:
		return Finding{Healthy, fmt.Sprintf("next blocks %s of the step while the GPU still works: leave it", percentText(f.Wait)), ""}
	}
	return Finding{Verdict: Healthy}
}

// lossText says how much a loss is that is none to act on.
func lossText(share float64) string {
	return fmt.Sprintf("%.1f %% of the time, less than the %s from which on data is the problem", 100*share, percentText(BoundShare))
}

// findCause is a job that data holds up: the first cause whose evidence is there.
func findCause(f Facts, also string) Finding {
	n := f.Nodes
	reading := n.Read >= MostShare || n.IOWait >= MostShare/2
	queued := n.Full >= FullShare && n.Busy >= MostShare && !reading // over a short time cores in use come and go
	atLimit := n.Busy >= FullShare || math.IsNaN(n.Busy) && n.Full >= FullShare || queued
	host := f.HostBusy >= FullShare
	who := "node"
	if n.Local {
		who = "this host's"
	}
	switch {
	case atLimit:
		return Finding{DataBound, also + who + " CPU: " + busyText(n) + missingNodes(n) + ruledOut(f, "cpu"), f.capacityAdvice()}
	case reading:
		return Finding{DataBound, also + "storage: workers spend " + evidenceText(n.Read) + " of their time reading files" + ruledOut(f, "read"),
			"faster or nearer storage, or more nodes that share the reading"}
	case n.Ready < n.All:
		return Finding{DataBound, also + fmt.Sprintf("only %d of %d nodes take work%s", n.Ready, n.All, troubleText(n)), "bring the others back, or add nodes"}
	case host && n.Local && n.Busy < FullShare: // false if unknown
		return Finding{DataBound, also + fmt.Sprintf("this host's CPU: %s of it in use, %s by the making of batches", percentText(f.HostBusy), percentText(n.Busy)),
			"free this host of other work, or nodes="}
	case host && !n.Local:
		return Finding{DataBound, also + fmt.Sprintf("this host's CPU: %s of it in use, nodes have cores to spare", percentText(f.HostBusy)),
			"move work off this host: fewer local workers, no other jobs"}
	case math.IsNaN(n.Busy) && math.IsNaN(n.Full):
		return Finding{DataBound, also + "not known yet", ""}
	}
	if n.Local { // no link
		return Finding{DataBound, also + "not known: this host has cores to spare" + ruledOut(f, "link"), ""}
	}
	return Finding{DataBound, also + "the way between: nodes have cores to spare" + ruledOut(f, "link"), "check the network to the nodes, with iperf3 for example"}
}

// capacityAdvice says what would feed the job: room for copies, where many pictures lack one, and more decoding.
func (f Facts) capacityAdvice() string {
	if f.Nodes.MissingCopies >= CopyShare { // false if unknown
		return fmt.Sprintf("--index-copies first: %s of the pictures have no copy, which decodes faster; then %s", percentText(f.Nodes.MissingCopies), f.decodingAdvice())
	}
	return f.decodingAdvice()
}

// decodingAdvice says how much more decoding would feed the job: as many nodes as are wanted, else what a step takes
// without its idle, and 15 % for bad luck.
func (f Facts) decodingAdvice() string {
	switch {
	case f.Wanted > 0 && f.Nodes.Partial:
		return fmt.Sprintf("%d nodes like this one feed it: %s → under 2 %%", f.Wanted, percentText(f.LossShare()))
	case f.Wanted > f.Nodes.Ready && !f.Nodes.Local:
		return fmt.Sprintf("%d → %d nodes: %s → under 2 %%", f.Nodes.Ready, f.Wanted, percentText(f.LossShare()))
	}
	loss := min(f.LossShare(), 0.95)
	if !(loss >= SlightShare) {
		return "more nodes or cores"
	}
	factor := 1.15 / (1 - loss)
	bound := ""
	if math.IsNaN(f.Idle) {
		bound = " at most"
	}
	if f.Nodes.Local {
		return fmt.Sprintf("×%.1f cores: %.0f → %.0f%s; or nodes=", factor, f.Nodes.Cores, math.Ceil(factor*f.Nodes.Cores), bound)
	}
	if f.Nodes.Partial {
		return fmt.Sprintf("×%.1f the nodes that it has%s: %s → under 2 %%", factor, bound, percentText(loss))
	}
	wanted := math.Ceil(factor * float64(f.Nodes.Ready))
	return fmt.Sprintf("%d → %.0f nodes%s: %s → under 2 %%", f.Nodes.Ready, wanted, bound, percentText(loss))
}

func noNode(n Nodes) string {
	return fmt.Sprintf("none of %d nodes takes work%s", n.All, troubleText(n))
}

// missingNodes says that nodes are not there that might be.
func missingNodes(n Nodes) string {
	if n.Ready == n.All {
		return ""
	}
	return fmt.Sprintf("; only %d of %d nodes take work", n.Ready, n.All)
}

func troubleText(n Nodes) string {
	if n.Trouble == "" {
		return ""
	}
	return ": " + n.Trouble
}

func busyText(n Nodes) string {
	if math.IsNaN(n.Busy) {
		return "all that are up have work queued"
	}
	return fmt.Sprintf("%.1f of %.0f cores busy", n.Busy*n.Cores, n.Cores)
}

// ruledOut says what it is not, as far as that is known.
func ruledOut(f Facts, cause string) string {
	var not []string
	if cause != "cpu" && f.Nodes.Busy < FullShare {
		not = append(not, "node CPU "+percentText(f.Nodes.Busy))
	}
	if cause != "read" && f.Nodes.Read < MostShare {
		not = append(not, "storage "+percentText(f.Nodes.Read))
	}
	if !f.Nodes.Local && f.HostBusy < FullShare {
		not = append(not, "this host "+percentText(f.HostBusy))
	}
	if len(not) == 0 {
		return ""
	}
	return "; not " + strings.Join(not, ", ")
}

func evidenceText(share float64) string {
	if math.IsNaN(share) {
		return "much"
	}
	return percentText(share)
}

func percentText(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
