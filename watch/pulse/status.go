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
	// pauseTimes and pauseIdle tell a pause, such as an evaluation, from a step: so many times the usual step, with
	// less than that share idle.
	pauseTimes, pauseIdle = 10, 0.1
	// quiet is after how long a rank that told nothing is said to be silent. Loops that evaluate tell nothing either.
	silentAfter = 5 * time.Second
	// gone is after how long without a pulse a rank's rate counts no more.
	goneAfter = 30 * time.Second
)

// Status is a job for people. Verdict, cause and action are left to the caller.
func (j *Job) Status(now time.Time) *pb.JobStatus {
	s := &pb.JobStatus{Job: j.Name, Plan: j.Plan, World: max(j.World, 1)}
	var waits, idles, fed, got mean
	for i := range j.Ranks {
		r := &j.Ranks[i]
		steps := r.withoutPauses()
		s.Ranks = append(s.Ranks, r.toStatus(steps, now))
		if len(steps) == 0 {
			continue
		}
		s.IdleUnmeasured = s.IdleUnmeasured || r.IdleUnmeasured
		f := meansOf(steps)
		waits.addValue(f.wait)
		idles.addValue(f.idle)
		if now.Sub(r.Told) < goneAfter {
			samples := float64(r.Samples)
			got.addValue(samples / f.seconds)
			fed.addValue(samples / (f.seconds * (1 - min(f.idle, 0.95))))
		}
	}
	s.Wait, s.Idle = waits.value(), idles.value()
	s.Supply, s.Demand = got.scaledBy(s.World), fed.scaledBy(s.World)
	return s
}

// Steps is the number of steps that a job's figures are of: those of the rank that told most.
func (j *Job) Steps() int {
	n := 0
	for i := range j.Ranks {
		n = max(n, len(j.Ranks[i].withoutPauses()))
	}
	return n
}

// Blocked is for how long one of the job's loops has been blocked in next.
func (j *Job) Blocked(now time.Time) time.Duration {
	longest := time.Duration(0)
	for i := range j.Ranks {
		longest = max(longest, j.Ranks[i].blockedFor(now))
	}
	return longest
}

// blockedFor is for how long the loop has been blocked in next. A trainer that is tells it about once a second; before
// its first step too, when opening the data takes longest.
func (r *Rank) blockedFor(now time.Time) time.Duration {
	if r.Blocked == 0 || now.Sub(r.Told) > silentAfter {
		return 0
	}
	return r.Blocked + now.Sub(r.Told)
}

func (r *Rank) toStatus(steps []Step, now time.Time) *pb.RankStatus {
	s := &pb.RankStatus{Rank: r.Rank, Host: r.Host, Ready: r.Ready, Window: r.Window}
	if n := len(r.Steps); n > 0 {
		s.Step = r.Steps[n-1].Number
	}
	if b := r.blockedFor(now); b > 0 {
		s.Blocked = durationpb.New(b)
	}
	if !r.Told.IsZero() && now.Sub(r.Told) > silentAfter {
		s.Silent = durationpb.New(now.Sub(r.Told))
	}
	if len(steps) == 0 {
		return s
	}
	f := meansOf(steps)
	s.StepP50, s.StepP99 = percentiles(steps, func(s Step) float64 { return s.Seconds })
	s.WaitP50, s.WaitP99 = percentiles(steps, func(s Step) float64 { return s.Wait })
	s.Wait, s.Idle, s.Transfer = f.wait, valueOrNil(f.idle), valueOrNil(f.transfer)
	return s
}

// withoutPauses are the latest steps without pauses.
func (r *Rank) withoutPauses() []Step {
	latest := r.Steps[max(0, len(r.Steps)-recent):]
	if len(latest) == 0 {
		return nil
	}
	usual, _ := percentiles(latest, Step.busySeconds)
	return slices.DeleteFunc(slices.Clone(latest), func(s Step) bool {
		return s.busySeconds() > pauseTimes*usual && s.Seconds-s.busySeconds() < pauseIdle*s.Seconds
	})
}

// busySeconds is what the step takes without waiting for data.
func (s Step) busySeconds() float64 {
	if math.IsNaN(s.Idle) {
		return s.Seconds - s.Wait
	}
	return s.Seconds - s.Idle
}

// stepMeans are means of steps: seconds of one, and shares of it.
type stepMeans struct{ seconds, wait, idle, transfer float64 }

// meansOf of steps, of which there is at least one. Idle and transfer are of the steps that know them.
func meansOf(steps []Step) stepMeans {
	var seconds, wait float64
	var idle, transfer knownShare
	for _, s := range steps {
		seconds += s.Seconds
		wait += s.Wait
		idle.addPart(s.Idle, s.Seconds)
		transfer.addPart(s.Transfer, s.Seconds)
	}
	return stepMeans{seconds / float64(len(steps)), wait / seconds, idle.share(), transfer.share()}
}

// knownShare is a share of the steps in which it is known.
type knownShare struct{ sum, of float64 }

func (p *knownShare) addPart(seconds, whole float64) {
	if !math.IsNaN(seconds) {
		p.sum, p.of = p.sum+seconds, p.of+whole
	}
}

// share is NaN where nothing is known.
func (p knownShare) share() float64 { return p.sum / p.of }

// mean of what is known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) addValue(v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		m.sum, m.n = m.sum+v, m.n+1
	}
}

func (m mean) value() *float64 { return m.scaledBy(1) }

func (m mean) scaledBy(n uint32) *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n) * float64(n)
	return &v
}

func valueOrNil(v float64) *float64 {
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

// SortByWaste puts the jobs first that waste most GPUs, as far as that is known, then those that wait most.
func SortByWaste(jobs []*pb.JobStatus) {
	slices.SortStableFunc(jobs, func(a, b *pb.JobStatus) int {
		return cmp.Or(cmp.Compare(WastedGPUs(b), WastedGPUs(a)), cmp.Compare(b.GetWait()*float64(b.World), a.GetWait()*float64(a.World)), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Plan, b.Plan))
	})
}

// WastedGPUs is how many GPUs a job wastes for data; -1: unknown.
func WastedGPUs(j *pb.JobStatus) float64 {
	if j.Idle == nil {
		return -1
	}
	return *j.Idle * float64(j.World)
}
