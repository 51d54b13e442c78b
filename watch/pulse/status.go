package pulse

import (
	"cmp"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	// recent is how many of the latest steps shares and percentiles are of.
	recent = 200
	// pauseTimes and pauseIdle tell a pause, such as an evaluation, from a step: so many times the usual step, with less than that share idle.
	pauseTimes, pauseIdle = 10, 0.1
	// quiet is after how long a rank that told nothing is said to be silent. Loops that evaluate tell nothing either.
	quiet = 5 * time.Second
	// gone is after how long without a pulse a rank's rate counts no more.
	gone = 30 * time.Second
)

// Status is a job for people. Verdict, cause and action are left to the caller.
func (j *Job) Status(now time.Time) *pb.JobStatus {
	s := &pb.JobStatus{Job: j.Name, Plan: j.Plan, World: max(j.World, 1)}
	var waits, idles, fed, got mean
	for i := range j.Ranks {
		r := &j.Ranks[i]
		steps := r.steps()
		s.Ranks = append(s.Ranks, r.status(steps, now))
		if len(steps) == 0 {
			continue
		}
		f := figures(steps)
		waits.add(f.wait)
		idles.add(f.idle)
		if now.Sub(r.Told) < gone {
			samples := float64(r.Samples)
			got.add(samples / f.seconds)
			fed.add(samples / (f.seconds * (1 - min(f.idle, 0.95))))
		}
	}
	s.Wait, s.Idle = waits.value(), idles.value()
	s.Supply, s.Demand = got.times(s.World), fed.times(s.World)
	return s
}

// Steps is the number of steps that a job's figures are of: those of the rank that told most.
func (j *Job) Steps() int {
	n := 0
	for i := range j.Ranks {
		n = max(n, len(j.Ranks[i].steps()))
	}
	return n
}

// Blocked is for how long one of the job's loops has been blocked in next.
func (j *Job) Blocked(now time.Time) time.Duration {
	longest := time.Duration(0)
	for i := range j.Ranks {
		longest = max(longest, j.Ranks[i].blocked(now))
	}
	return longest
}

// blocked is for how long the loop has been blocked in next. A trainer that is tells it about once a second; before its first step too,
// when opening the data takes longest.
func (r *Rank) blocked(now time.Time) time.Duration {
	if r.Blocked == 0 || now.Sub(r.Told) > quiet {
		return 0
	}
	return r.Blocked + now.Sub(r.Told)
}

func (r *Rank) status(steps []Step, now time.Time) *pb.RankStatus {
	s := &pb.RankStatus{Rank: r.Rank, Host: r.Host, Ready: r.Ready, Window: r.Window}
	if n := len(r.Steps); n > 0 {
		s.Step = r.Steps[n-1].Number
	}
	if b := r.blocked(now); b > 0 {
		s.Blocked = durationpb.New(b)
	}
	if !r.Told.IsZero() && now.Sub(r.Told) > quiet {
		s.Silent = durationpb.New(now.Sub(r.Told))
	}
	if len(steps) == 0 {
		return s
	}
	f := figures(steps)
	s.StepP50, s.StepP99 = percentiles(steps, func(s Step) float64 { return s.Seconds })
	s.WaitP50, s.WaitP99 = percentiles(steps, func(s Step) float64 { return s.Wait })
	s.Wait, s.Idle, s.Transfer = f.wait, known(f.idle), known(f.transfer)
	return s
}

// steps are the latest steps without pauses.
func (r *Rank) steps() []Step {
	latest := r.Steps[max(0, len(r.Steps)-recent):]
	if len(latest) == 0 {
		return nil
	}
	usual, _ := percentiles(latest, Step.busy)
	return slices.DeleteFunc(slices.Clone(latest), func(s Step) bool {
		return s.busy() > pauseTimes*usual && s.Seconds-s.busy() < pauseIdle*s.Seconds
	})
}

// busy is what the step takes without waiting for data.
func (s Step) busy() float64 {
	if math.IsNaN(s.Idle) {
		return s.Seconds - s.Wait
	}
	return s.Seconds - s.Idle
}

// sums are means of steps: seconds of one, and shares of it.
type sums struct{ seconds, wait, idle, transfer float64 }

// figures of steps, of which there is at least one. Idle and transfer are of the steps that know them.
func figures(steps []Step) sums {
	var seconds, wait float64
	var idle, transfer partial
	for _, s := range steps {
		seconds += s.Seconds
		wait += s.Wait
		idle.add(s.Idle, s.Seconds)
		transfer.add(s.Transfer, s.Seconds)
	}
	return sums{seconds / float64(len(steps)), wait / seconds, idle.share(), transfer.share()}
}

// partial is a share of the steps in which it is known.
type partial struct{ sum, of float64 }

func (p *partial) add(seconds, whole float64) {
	if !math.IsNaN(seconds) {
		p.sum, p.of = p.sum+seconds, p.of+whole
	}
}

// share is NaN where nothing is known.
func (p partial) share() float64 { return p.sum / p.of }

// mean of what is known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		m.sum, m.n = m.sum+v, m.n+1
	}
}

func (m mean) value() *float64 { return m.times(1) }

func (m mean) times(n uint32) *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n) * float64(n)
	return &v
}

func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// percentiles are the 50th and the 99th, by nearest rank.
func percentiles(steps []Step, of func(Step) float64) (p50, p99 float64) {
	values := make([]float64, len(steps))
	for i, s := range steps {
		values[i] = of(s)
	}
	slices.Sort(values)
	at := func(share float64) float64 { return values[int(math.Ceil(share*float64(len(values))))-1] }
	return at(0.5), at(0.99)
}

// Sort puts the jobs first that waste most GPUs, as far as that is known, then those that wait most.
func Sort(jobs []*pb.JobStatus) {
	slices.SortStableFunc(jobs, func(a, b *pb.JobStatus) int {
		return cmp.Or(cmp.Compare(Wasted(b), Wasted(a)), cmp.Compare(b.GetWait()*float64(b.World), a.GetWait()*float64(a.World)), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Plan, b.Plan))
	})
}

// Wasted is how many GPUs a job wastes for data; -1: unknown.
func Wasted(j *pb.JobStatus) float64 {
	if j.Idle == nil {
		return -1
	}
	return *j.Idle * float64(j.World)
}
