package control

import (
	"math"
	"math/rand/v2"
)

// script is one training run on nodes that a Scaler starts and ends. Seconds; what is not set is the usual run's.
type script struct {
	Name       string
	Nodes      int
	Delay      float64  // from a wish to a node
	Ahead      *int     // steps that the host may be ahead of the GPU; 3
	Accumulate int      // steps between two barriers
	Noise      *float64 // of the GPU's times, share; 0.03
	PauseEvery int      // steps
	Pause      float64
	Lie        float64 // factor on idle
	Unmetered  int     // ranks
	NodeRate   float64 // share of its cores that a node's disk can feed
	Link       float64 // share of the demand that the trainers' link carries
	SlowRank   float64
	Silent     int
	SilentAt   float64
	Host, GPU  float64 // of a step; 0.04, 0.2
	Bounds     bounds
}

// bounds are what a run must show; what is not set may be anything.
type bounds struct {
	Changes   *int
	Nodes     *[2]int    // at the end
	CalmAfter float64    // no period later than this has over 1 % idle
	Hours     float64    // node-hours over those of one who knows, share
	Stall     float64    // share
	Demand    float64    // error against what is taken when fed, share, once calm
	Peak      float64    // most nodes, over what is needed
	Back      [2]float64 // at most so many times what is needed, after so many seconds
}

// outcome is what a run showed.
type outcome struct {
	changes, nodes, peak  int
	calm                  float64 // end of the last period with over 1 % idle
	stall, hours, demand  float64
	needed                float64 // nodes, not rounded
	readings              []Reading
	at                    []float64
	wanted, alive, starts []int
}

const (
	simRanks, simBatch = 8, 256
	simCores           = 16.0
	simCost            = 0.008 // core-seconds per sample
	simPeriod, simEnd  = 15.0, 1800.0
	simWindow          = 16 // batches per rank
)

// machine is a node from its start to its end.
type machine struct{ up, down float64 }

// loop is a run: trainers' recurrences over steps, and nodes as one server of work in the order in which it is needed.
type loop struct {
	script
	outcome
	rng      *rand.Rand
	job      Job
	cost     SampleCost
	scaler   Scaler
	machines []machine
	ticked   float64
	work     float64 // core-seconds done this period
	busy     float64
	free     float64 // when the server is
	linkFree float64
	taken    []float64 // per step, when the last rank took its batch
	nodeTime float64
}

// run plays the script.
func (s script) run(seed uint64) outcome {
	l := &loop{script: s, rng: rand.New(rand.NewPCG(seed, 1))}
	l.defaults()
	for range s.Nodes {
		l.machines = append(l.machines, machine{0, math.Inf(1)})
	}
	l.play()
	return l.outcome
}

func (l *loop) defaults() {
	if l.Host == 0 {
		l.Host, l.GPU = 0.04, 0.2
	}
	if l.Ahead == nil {
		three := 3
		l.Ahead = &three
	}
	if l.Noise == nil {
		noise := 0.03
		l.Noise = &noise
	}
	l.Accumulate = max(l.Accumulate, 1)
	if l.SlowRank == 0 {
		l.SlowRank = 1
	}
	if l.Lie == 0 {
		l.Lie = 1
	}
	if l.NodeRate == 0 {
		l.NodeRate = 1
	}
}

// lane is one rank's clock: when it called and left next, when its GPU was done, and the same with data always there.
type lane struct {
	call, left, done float64
	ideal, idealDone float64
}

func (l *loop) play() {
	var lanes [simRanks]lane
	done := []float64{}      // per step, of the slowest rank
	idealDone := []float64{} // the same with data always there
	for k := 0; lanes[0].left < simEnd; k++ {
		var steps [simRanks]Step
		latest := 0.0
		ready := make([]float64, simRanks)
		for r := range lanes {
			ready[r] = l.serve(k)
		}
		gpu := l.GPU
		finish, idealFinish := 0.0, 0.0
		for r := range lanes {
			a := &lanes[r]
			g := gpu * max(0.3, 1+*l.Noise*l.rng.NormFloat64())
			if r == 0 {
				g *= l.SlowRank
			}
			left := max(a.call, ready[r])
			idle := max(left, a.done) - max(a.call, a.done)
			steps[r] = Step{Number: uint64(k), Seconds: left - a.left, Wait: left - a.call, Idle: idle * l.Lie}
			if r < l.Unmetered {
				steps[r].Idle = math.NaN()
			}
			a.left = left
			a.done = max(left+l.Host, max(left, a.done)+g)
			a.idealDone = max(a.ideal+l.Host, max(a.ideal, a.idealDone)+g)
			finish, idealFinish = max(finish, a.done), max(idealFinish, a.idealDone)
			latest = max(latest, left)
		}
		l.taken = append(l.taken, latest)
		l.advance(latest)
		for r := range lanes {
			report := Report{Rank: uint32(r), World: simRanks, Samples: simBatch}
			if k > 0 {
				report.Steps = []Step{steps[r]}
			}
			l.job.AddReport(report)
		}
		if (k+1)%l.Accumulate == 0 {
			for r := range lanes {
				lanes[r].done, lanes[r].idealDone = finish, idealFinish
			}
		}
		done, idealDone = append(done, finish), append(idealDone, idealFinish)
		for r := range lanes {
			a := &lanes[r]
			a.call = l.turn(k, a.left, done)
			a.ideal = l.turn(k, a.ideal, idealDone)
		}
	}
	l.stall = 1 - lanes[0].ideal/lanes[0].call
	trueStep := lanes[0].ideal / float64(len(done))
	if n := l.PauseEvery; n > 0 {
		trueStep -= l.Pause * float64(len(done)/n) / float64(len(done))
	}
	l.needed = simRanks * simBatch * simCost / trueStep / simCores
	l.hours = l.nodeTime/(math.Ceil(l.needed)*simEnd) - 1
	l.demand = simRanks * simBatch / trueStep
}

// turn is when the host calls next after step k, whose batch it got at left.
func (l *loop) turn(k int, left float64, done []float64) float64 {
	t := left + l.Host
	wait := k - *l.Ahead
	pause := l.PauseEvery > 0 && (k+1)%l.PauseEvery == 0
	if pause {
		wait = k
	}
	if wait >= 0 {
		t = max(t, done[wait])
	}
	if pause {
		t += l.Pause
	}
	return t
}

// serve is when one more batch of step k has come: work begins when it is wanted, a window ahead, and the nodes share
// it.
func (l *loop) serve(k int) float64 {
	wanted := 0.0
	if k >= simWindow {
		wanted = l.taken[k-simWindow]
	}
	t := max(l.free, wanted)
	left := simBatch * simCost
	for left > 1e-12 {
		if t >= l.ticked+simPeriod {
			l.advance(t)
		}
		rate, until := l.capacity(t)
		until = min(until, l.ticked+simPeriod)
		if t >= until {
			until = t + simPeriod
		}
		d := until - t
		if rate > 0 {
			d = min(d, left/rate)
			l.busy += d
		}
		l.work += d * rate
		left -= d * rate
		t += d
	}
	l.free = t
	if l.Link > 0 {
		l.linkFree = max(l.linkFree, t) + l.GPU/simRanks/l.Link
		t = l.linkFree
	}
	return t
}

// capacity is the core-seconds per second of all nodes at a time, and when that changes.
func (l *loop) capacity(t float64) (rate, until float64) {
	until = math.Inf(1)
	for i, m := range l.machines {
		if m.up > t {
			until = min(until, m.up)
			continue
		}
		if m.down > t && !l.silent(i, t) {
			rate += simCores * l.NodeRate
			until = min(until, m.down)
		}
	}
	return rate, until
}

func (l *loop) silent(i int, t float64) bool { return i < l.Silent && t >= l.SilentAt }

// advance ends periods until t.
func (l *loop) advance(t float64) {
	for t >= l.ticked+simPeriod && l.ticked < simEnd {
		l.ticked += simPeriod
		l.tick(l.ticked)
	}
}

func (l *loop) tick(now float64) {
	var loads []Load
	alive, up := 0, 0
	for i, m := range l.machines {
		if m.down <= now {
			continue
		}
		alive++
		if m.up <= now {
			up++
		}
		switch {
		case l.silent(i, now):
			loads = append(loads, Load{Silent: true})
		case m.up <= now:
			loads = append(loads, Load{Cores: simCores, CoreSeconds: l.busy * simCores * l.NodeRate, BusySeconds: l.busy})
		}
	}
	l.nodeTime += float64(alive) * simPeriod
	l.cost.AddBatch(l.work, int(l.work/simCost), 0.3)
	if l.job.ranks == nil {
		l.job.AddReport(Report{World: simRanks, Samples: simBatch, Blocked: true})
	}
	r := l.job.ReadPeriod(simPeriod)
	r.Cost = float64(l.cost)
	l.work, l.busy = 0, 0
	if r.Idle > 0.01 || math.IsNaN(r.Idle) && r.Wait > 0.01 {
		l.calm = now
	}
	w := l.scaler.DecideNodes(simPeriod, []Reading{r}, loads, alive)
	l.readings, l.at = append(l.readings, r), append(l.at, now)
	l.wanted, l.alive, l.starts = append(l.wanted, w.Nodes), append(l.alive, alive), append(l.starts, up)
	l.set(w.Nodes, alive, now)
}

// set starts and ends nodes.
func (l *loop) set(wanted, alive int, now float64) {
	l.nodes, l.peak = wanted, max(l.peak, wanted)
	if wanted != alive {
		l.changes++
	}
	for ; alive < wanted; alive++ {
		l.machines = append(l.machines, machine{now + l.Delay, math.Inf(1)})
	}
	for i := len(l.machines) - 1; i >= 0 && alive > wanted; i-- {
		if l.machines[i].down > now {
			l.machines[i].down = now
			alive--
		}
	}
}
