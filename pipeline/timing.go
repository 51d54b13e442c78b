package pipeline

import (
	"slices"
	"time"
)

// Timing tells where the time of one sample went.
type Timing struct {
	Index uint64
	Key   string
	// Begun is when a worker took it up. Then its files were read, it waited for a core, and it was decoded and transformed; what it did
	// not come to is 0.
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

// mark notes that a stage of sample i ends, where the want asks for timings. Only the worker that has the sample does.
func (w *Want) mark(i, stage int) {
	if w.made.stamps != nil {
		w.made.stamps[i][stage] = max(time.Since(w.made.begun), 1)
	}
}

// slowest are the timings of the samples that took longest, the longest first.
func (w *Want) slowest() []Timing {
	var order []int
	for i := range w.made.stamps {
		if s := &w.made.stamps[i]; s[takenUp] > 0 {
			s.settle()
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(w.made.stamps[b].took() - w.made.stamps[a].took()) })
	var all []Timing
	for _, i := range order[:min(len(order), w.Slowest)] {
		all = append(all, w.timing(i))
	}
	return all
}

// settle has a stage that did not come about end with the one behind it.
func (s *stamp) settle() {
	for stage := sampleDone - 1; stage > takenUp; stage-- {
		if s[stage] == 0 {
			s[stage] = s[stage+1]
		}
	}
}

func (s *stamp) took() time.Duration { return s[sampleDone] - s[takenUp] }

func (w *Want) timing(i int) Timing {
	s, ref := &w.made.stamps[i], w.ref(i)
	t := Timing{Index: ref.Index, Begun: w.made.begun.Add(s[takenUp]), Read: s[filesRead] - s[takenUp], Queued: s[coreLent] - s[filesRead], Made: s[sampleDone] - s[coreLent]}
	var room [512]byte
	if sample, err := w.job.snapshot.At(int(ref.Index), room[:]); err == nil {
		t.Key = string(sample.Key)
	}
	return t
}
