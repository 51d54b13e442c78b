package pulse

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/control"
)

const (
	readSeconds = 30.0             // of the latest steps that a demand is read off
	readSteps   = 32               // at least
	starvedFor  = 30 * time.Second // in next, from which on a loop without steps is taken to starve, not to begin
)

// Reading is what the job's latest steps say of its demand; see control.Job. Of a large job a node hears some ranks
// only: what it reads is no more than the demand, and the ranks that wait for data most show all of it. What nodes
// spend on a sample is left to the caller.
func (j *Job) Reading() control.Reading {
	var c control.Job
	var told []control.Report // of one step each
	for i := range j.Ranks {
		r := &j.Ranks[i]
		if r.Left || r.Told.IsZero() {
			continue
		}
		report := control.Report{Rank: r.Rank, World: max(r.World, 1), Samples: r.Samples, Blocked: r.Blocked >= starvedFor}
		c.AddReport(report)
		steps := latestSteps(r.Steps)
		for k := range steps {
			report.Steps = steps[k : k+1]
			told = append(told, report)
		}
	}
	slices.SortStableFunc(told, func(a, b control.Report) int { return cmp.Compare(a.Steps[0].Number, b.Steps[0].Number) })
	for _, report := range told {
		c.AddReport(report)
	}
	c.CloseSteps()
	return c.ReadPeriod(readSeconds)
}

// latestSteps are the steps of the last 30 s, and no fewer than 32.
func latestSteps(steps []Step) []control.Step {
	first, seconds := len(steps), 0.0
	for first > 0 && (seconds < readSeconds || len(steps)-first < readSteps) {
		first--
		seconds += steps[first].Seconds
	}
	all := make([]control.Step, 0, len(steps)-first)
	for _, s := range steps[first:] {
		all = append(all, control.Step{Number: s.Number, Seconds: s.Seconds, Wait: s.Wait, Idle: s.Idle})
	}
	return all
}
