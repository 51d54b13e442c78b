package control

import (
	"math"
	"slices"
)

// Bounds of what a job can be.
const (
	// MaxRanks of one.
	MaxRanks = 1 << 16
	// MaxSamples of a step, all ranks together.
	MaxSamples = 1 << 30
)

const (
	maxOpen     = 64   // numbers that not all ranks have told of
	quietLimit  = 30.0 // seconds without a step after which a job asks for nothing
	fedWait     = 1e-3 // seconds; a rank that waits less is fed
	fedRun      = 8    // fed steps before the first that counts
	fedLeast    = 8    // that count, for a mean
	leastSteps  = 16   // that a demand is read off, or
	leastTime   = 15.0 // seconds of them: of fewer too many may be those in which the host of an asynchronous loop runs ahead
	warmupSteps = 8    // steps after a pause or the start, in which the host runs ahead of the GPU again, shorter than its steps
	waitLeast   = 0.02 // share of the step from which on wait may hide a demand
	mostFaster  = 4.0  // a job is not taken to be faster than so many times what it shows
	unmetered   = 1.5  // the same for one without a meter
)

// Job matches the steps of a training job's ranks by their number and reads its demand off them. The zero value is
// ready.
type Job struct {
	ranks map[uint32]rank
	world uint32
	open  []jobStep // in the order in which they were begun
	usual usualStep
	fed   int // steps in a row in which no rank waited
	since int // steps since the start or the latest pause

	sum          sums // of the period
	known        Reading
	quietSeconds float64 // seconds since the last step or sign of life
}

// rank is what a Job keeps of one.
type rank struct {
	last    uint64 // number
	told    bool
	samples uint32
	blocked bool
}

// jobStep is one step number over the ranks.
type jobStep struct {
	number           uint64
	ranks, metered   uint32
	seconds          float64 // sum over ranks
	wait, idle, lost float64 // the largest
	active           float64 // the least
}

// sums are over the steps of a period.
type sums struct {
	steps, fedSteps, warmups    int
	seconds, active, idle, wait float64 // over steps
	fedSeconds                  float64
	metered, unmetered          bool // some rank has a meter; some has none
}

// Report is what one rank tells at once.
type Report struct {
	Rank, World uint32
	// Samples that one step takes from this rank.
	Samples uint32
	// Steps that ended since the last report, oldest first.
	Steps []Step
	// Blocked tells that the loop is blocked in next, now.
	Blocked bool
}

// AddReport takes a rank's report. Reports of ranks that cannot be are left out.
func (j *Job) AddReport(r Report) {
	if r.World == 0 || r.World > MaxRanks || r.Rank >= r.World {
		return
	}
	if r.World != j.world { // it began again with another world
		*j = Job{world: r.World, ranks: map[uint32]rank{}, known: j.known}
	}
	k := j.ranks[r.Rank]
	k.samples, k.blocked = r.Samples, r.Blocked
	for _, s := range r.Steps {
		if s, ok := s.sanitize(); ok && (!k.told || s.Number != k.last) {
			k.last, k.told = s.Number, true
			j.addStep(s)
		}
	}
	j.ranks[r.Rank] = k
}

// addStep enters one rank's step, and counts its number when it is the last rank's.
func (j *Job) addStep(s Step) {
	i := len(j.open) - 1
	for i >= 0 && j.open[i].number != s.Number {
		i--
	}
	if i < 0 {
		if len(j.open) == maxOpen { // some rank does not tell: what there is has to do
			j.countStep(j.open[0])
			j.open = slices.Delete(j.open, 0, 1)
		}
		i = len(j.open)
		j.open = append(j.open, jobStep{number: s.Number, active: math.Inf(1)})
	}
	t := &j.open[i]
	t.addStep(s)
	if t.ranks >= j.world {
		j.countStep(*t)
		j.open = slices.Delete(j.open, i, i+1)
	}
}

// CloseSteps says that no more will be told of the steps so far: those that not all ranks told of count with the ranks
// that did. The least step without idle of some ranks is no less than that of all, so some show no more demand than
// there is.
func (j *Job) CloseSteps() {
	for _, t := range j.open {
		j.countStep(t)
	}
	j.open = j.open[:0]
}

func (t *jobStep) addStep(s Step) {
	t.ranks++
	t.seconds += s.Seconds
	t.wait = max(t.wait, s.Wait)
	t.lost = max(t.lost, s.lostSeconds())
	if s.hasIdle() {
		t.metered++
		t.idle = max(t.idle, s.Idle)
		t.active = min(t.active, s.Seconds-s.Idle)
	}
}

// countStep takes a step into the period, unless it was a pause or came right after one.
func (j *Job) countStep(t jobStep) {
	seconds := t.seconds / float64(t.ranks)
	active := t.active
	if t.metered == 0 {
		active = seconds
	}
	if j.usual.isPause(seconds, active, t.lost) {
		j.sum.warmups++
		j.since = 0
		return
	}
	p := &j.sum
	if j.since++; j.since <= warmupSteps {
		p.warmups++
		return
	}
	p.steps++
	p.seconds += seconds
	p.active += active
	p.idle += t.idle
	p.wait += t.wait
	p.metered = p.metered || t.metered > 0
	p.unmetered = p.unmetered || t.metered < t.ranks
	if t.wait >= fedWait {
		j.fed = 0
		return
	}
	if j.fed++; j.fed > fedRun {
		p.fedSteps++
		p.fedSeconds += seconds
	}
}

// stepSamples is what one step of all ranks takes; ranks that are not heard count as the others.
func (j *Job) stepSamples() float64 {
	sum := 0.0
	for _, r := range j.ranks {
		sum += float64(r.samples)
	}
	if len(j.ranks) == 0 {
		return 0
	}
	return min(sum*float64(j.world)/float64(len(j.ranks)), MaxSamples)
}

// Reading is what a job shows over one period.
type Reading struct {
	// Demand is the samples per second that it would take if data were always there, Supply what it took. 0: it asks
	// for none, or nothing is known yet.
	Demand, Supply float64
	// Idle and Wait are shares of its step, the worst rank's. Idle is NaN where no rank has a meter.
	Idle, Wait float64
	// Cost is the core-seconds that a sample takes a node, which no step shows: whoever knows it sets it. 0: unknown.
	Cost float64
	// UpperBound tells that Demand is one, because a rank without a meter waits.
	UpperBound bool
	// Starved tells that no step ends and a rank is blocked for data.
	Starved bool
	// Active tells that the job has trainers.
	Active bool
}

// ReadPeriod ends a period of so many seconds and returns what it showed. A job without steps keeps what it showed
// before for 30 s.
func (j *Job) ReadPeriod(seconds float64) Reading {
	if !(seconds > 0) {
		seconds = 0
	}
	p := j.sum
	if p.steps > 0 || p.warmups > 0 {
		j.quietSeconds = 0
	} else {
		j.quietSeconds += min(seconds, quietLimit+1)
	}
	if p.steps >= leastSteps || p.seconds >= leastTime {
		j.known = p.toReading(j.stepSamples())
	}
	j.sum = sums{}
	r, blocked := j.known, j.isBlocked()
	if j.quietSeconds >= quietLimit || r.Demand == 0 {
		r = Reading{Idle: math.NaN(), Starved: blocked}
	}
	r.Active = len(j.ranks) > 0
	return r
}

func (j *Job) isBlocked() bool {
	for _, r := range j.ranks {
		if r.blocked {
			return true
		}
	}
	return false
}

// toReading is the period's, of steps that take so many samples.
func (p sums) toReading(samples float64) Reading {
	n := float64(p.steps)
	step, wait := p.seconds/n, p.wait/n
	// The first term is exact where ranks wait for each other in every step, the second where they are fed and where
	// they do so rarely.
	c := max(p.active/n, step-p.idle/n)
	r := Reading{Idle: p.idle / p.seconds, Wait: p.wait / p.seconds, Supply: samples / step}
	switch {
	case !p.unmetered:
	case p.fedSteps > fedLeast:
		c = min(c, p.fedSeconds/float64(p.fedSteps))
	case wait > waitLeast*step:
		c = min(c, max(step-wait, step/unmetered))
		r.UpperBound = true
	}
	if !p.metered {
		r.Idle = math.NaN()
	}
	r.Demand = samples / max(c, step/mostFaster)
	return r
}
