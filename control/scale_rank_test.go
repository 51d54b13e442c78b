package control_test

import (
	"math"
	"math/rand/v2"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/pick"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

const (
	crowdHost    = crowdStep / 10 // seconds that the host takes for a step
	crowdAhead   = 3              // steps that it may be ahead of its GPU
	crowdPulse   = 0.25           // seconds between two pulses
	crowdBlock   = 0.5            // in next, after which that is told
	crowdOutlast = 2.0            // seconds of a node's silence that batches have to outlast
	crowdMemory  = 64             // batches that a rank has memory for
	crowdSpare   = 2              // batches wanted beside those that keep nodes busy
)

// job is ranks that wait for each other at each step.
type job struct {
	name  string
	world int
	here  []*rank
	noise *rand.Rand
}

func newJob(name string, world int, seed uint64) *job {
	return &job{name: name, world: world, noise: rand.New(rand.NewPCG(1, seed))}
}

// meet lets all go on when the last rank has its batch. Steps vary by 15 %, on all ranks alike.
func (j *job) meet(r *rank) {
	if j.here = append(j.here, r); len(j.here) < j.world {
		return
	}
	step := crowdStep * math.Max(0.3, 1+0.15*j.noise.NormFloat64())
	all := j.here
	j.here = nil
	for _, r := range all {
		r.submit(step)
	}
}

// rank is a training loop with a GPU, and what fetches its batches.
type rank struct {
	fleet
	number  int
	pace    control.Pace
	window  control.Window
	pending []*want
	steps   []*pb.Step
	step    uint64
	ready   int // as it told last

	called, returned, told float64
	blocked                bool
	gpu                    float64 // when it is done with what it has
	finished               [crowdAhead]float64
	stalled, noted         float64
}

// begin calls next for the first time.
func (r *rank) begin() {
	r.returned, r.told = -1, -1
	r.tick()
	r.next()
}

// next asks for batches up to the window and takes the first, now or when it comes.
func (r *rank) next() {
	r.called = r.crowd.now
	for n := r.ahead(); len(r.pending) < n; {
		w := &want{rank: r, step: r.step + uint64(len(r.pending)), due: r.crowd.now + r.pace.DueIn(len(r.pending))}
		if k := len(r.pending); k > 0 {
			w.due = math.Max(w.due, r.pending[k-1].due)
		}
		r.pending = append(r.pending, w)
		r.want(w)
	}
	r.assign()
	if r.pending[0].arrived {
		r.take()
		return
	}
	r.blocked = true
	r.tellBlocked(r.step)
}

// tellBlocked tells that the loop is blocked each half second, until that step ends.
func (r *rank) tellBlocked(step uint64) {
	r.crowd.after(crowdBlock, func() {
		if r.blocked && r.step == step {
			r.tell(r.crowd.now - r.called)
			r.tellBlocked(step)
		}
	})
}

// ahead is the window.
func (r *rank) ahead() int {
	busy := crowdSpare + max(len(r.live), 1)*pick.InFlight(1, crowdBatch)
	n := r.window.Batches(r.pace.Seconds(), crowdOutlast)
	if n == 0 {
		n = busy
	}
	return max(min(n, busy+2*(r.ready+crowdSpare), crowdMemory), crowdSpare)
}

// came says that a batch is there.
func (r *rank) came(w *want) {
	w.arrived = true
	if r.blocked && r.pending[0] == w {
		r.take()
	}
}

// take returns from next.
func (r *rank) take() {
	now := r.crowd.now
	r.blocked = false
	r.pending = r.pending[1:]
	if r.returned >= 0 {
		idle := r.idle()
		r.steps = append(r.steps, &pb.Step{Number: r.step, Step: now - r.returned, Wait: now - r.called, Idle: &idle})
	}
	r.step++
	r.returned = now
	if now-r.told >= crowdPulse {
		r.tell(0)
	}
	r.job.meet(r)
}

// idle is how long the GPU stands still for data, if it gets its batch now.
func (r *rank) idle() float64 { return math.Max(r.crowd.now-math.Max(r.called, r.gpu), 0) }

// submit gives the GPU a step, and calls next as soon as the host may.
func (r *rank) submit(step float64) {
	now := r.crowd.now
	r.stalled += r.idle()
	r.gpu = math.Max(r.gpu, now) + step
	at := r.step % crowdAhead
	next := math.Max(now+crowdHost, r.finished[at])
	r.finished[at] = r.gpu
	r.crowd.after(next-now, r.next)
}

// tell sends a pulse.
func (r *rank) tell(blocked float64) {
	p := &pb.Pulse{Rank: uint32(r.number), World: uint32(r.job.world), Samples: crowdBatch, Steps: r.steps, Window: uint32(r.ahead())}
	for _, w := range r.pending {
		if w.arrived {
			p.Ready++
		}
	}
	if blocked > 0 {
		p.Blocked = seconds(blocked)
	}
	r.steps, r.told, r.ready = nil, r.crowd.now, int(p.Ready)
	for _, s := range p.Steps {
		step := control.Step{Number: s.Number, Seconds: s.Step, Wait: s.Wait, Idle: *s.Idle}
		r.pace.Add(step)
		r.window.AddStep(step)
	}
	r.pulse(p)
}
