package pipeline

import (
	"slices"
	"time"
)

// Timing tells where the time of one sample went.
type Timing struct {
	Index uint64
	Key   string
	// Begun is when a worker took it up. Then its files were read, it waited for a core, and it was decoded and
	// transformed; what it did not come to is 0.
	Begun              time.Time
	Read, Queued, Made time.Duration
}

// Took is all of it.
func (t *Timing) Took() time.Duration { return t.Read + t.Queued + t.Made }

// A stamp is when each stage of a sample ended, from the want's begin on; 0: it has not.
type stamp [stages]time.Duration

const (
	takenUp = iota // by a worker
	filesRead
	coreLent
	sampleDone
	stages
)

// markStage notes that a stage of sample i ends, where the want asks for timings. Only the worker that has the sample
// does.
func (a *assembly) markStage(i, stage int) {
	if a.stamps != nil {
		a.stamps[i][stage] = max(time.Since(a.begun), 1)
	}
}

// listSlowest are the timings of the samples that took longest, the longest first.
func (a *assembly) listSlowest() []Timing {
	var order []int
	for i := range a.stamps {
		if s := &a.stamps[i]; s[takenUp] > 0 {
			s.fillGaps()
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(x, y int) int { return int(a.stamps[y].totalTime() - a.stamps[x].totalTime()) })
	var all []Timing
	for _, i := range order[:min(len(order), a.want.Slowest)] {
		all = append(all, a.timingOf(i))
	}
	return all
}

// fillGaps has a stage that did not come about end with the one behind it.
func (s *stamp) fillGaps() {
	for stage := sampleDone - 1; stage > takenUp; stage-- {
		if s[stage] == 0 {
			s[stage] = s[stage+1]
		}
	}
}

func (s *stamp) totalTime() time.Duration { return s[sampleDone] - s[takenUp] }

func (a *assembly) timingOf(i int) Timing {
	s, ref := &a.stamps[i], a.sampleAt(i)
	t := Timing{Index: ref.Index, Begun: a.begun.Add(s[takenUp]), Read: s[filesRead] - s[takenUp], Queued: s[coreLent] - s[filesRead], Made: s[sampleDone] - s[coreLent]}
	var room [512]byte
	if sample, err := a.want.job.snapshot.At(int(ref.Index), room[:]); err == nil {
		t.Key = string(sample.Key)
	}
	return t
}
