package pulse

import "github.com/feedwater-io/feedwater/control"

const (
	readSeconds = 30.0 // of the latest steps that a demand is read off
	readSteps   = 32   // at least
)

// Reading is what the job's latest steps say of its demand; see control.Job. What nodes spend on a sample is left to the caller.
func (j *Job) Reading() control.Reading {
	var c control.Job
	for i := range j.Ranks {
		r := &j.Ranks[i]
		if r.Left || r.Told.IsZero() {
			continue
		}
		c.Add(control.Report{Rank: r.Rank, World: max(r.World, 1), Samples: r.Samples, Steps: latest(r.Steps), Blocked: r.Blocked > 0})
	}
	return c.Read(readSeconds)
}

// latest are the steps of the last 30 s, and no fewer than 32.
func latest(steps []Step) []control.Step {
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
