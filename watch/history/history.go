// Package history keeps the last ten minutes of what overviews tell of jobs, ranks and nodes, one point each 5 s. So
// whoever looks late sees what was. Its memory is bounded whatever jobs there are. A figure that nobody knew is a gap,
// never 0. It starts no goroutine: its owner runs Run.
package history

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

// Subject is what figures are of: a job, a rank of it, or a node. Exactly one of Job and Node has a meaning: Node is
// empty for a job.
type Subject struct {
	Job, Plan string
	Rank      int // AllRanks: the job
	Node      string
}

// AllRanks stands for a whole job.
const AllRanks = -1

// The figures of each kind of subject, by the names that they have in an answer. Shares are of the latest steps, as the
// overview has them.
var (
	jobFigures  = []string{"wait", "idle", "images_per_second", "nodes"}
	rankFigures = []string{"wait", "idle", "step_seconds"}
	nodeFigures = []string{"images_per_second", "effective_cores", "wants"}
)

func (s Subject) figures() []string {
	switch {
	case s.Node != "":
		return nodeFigures
	case s.Rank == AllRanks:
		return jobFigures
	}
	return rankFigures
}

// MaxSubjects bounds how much is remembered: four figures of a subject take 2 KiB. Those that come when it is full take the place
// of those that ended, longest ago first; where none did they are not remembered.
const MaxSubjects = 2048

// History remembers. Its methods may be called from many goroutines at once.
type History struct {
	began time.Time

	mu     sync.Mutex
	rings  map[Subject]*ring
	latest int64 // slot that was added last
}

// New returns an empty history.
func New() *History { return &History{began: time.Now(), rings: map[Subject]*ring{}} }

// slotOf is the number of the slot that a time lies in. It goes by the monotonic clock: a clock that is set makes no gap.
func (h *History) slotOf(t time.Time) int64 { return Slots + int64(max(t.Sub(h.began), 0)/Every) }

// Run adds an overview in the middle of each slot until ctx ends.
func (h *History) Run(ctx context.Context, overview func() *watch.Overview) {
	untilNext := func() time.Duration { return Every - (time.Since(h.began)+Every/2)%Every }
	wait := time.NewTimer(untilNext())
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
			h.Add(overview())
			wait.Reset(untilNext())
		case <-ctx.Done():
			return
		}
	}
}

// Add remembers an overview, and forgets what was last seen more than ten minutes before it. It does not keep o.
func (h *History) Add(o *watch.Overview) {
	slot := h.slotOf(o.Time)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = slot
	for s, r := range h.rings {
		if r.latest <= slot-Slots {
			delete(h.rings, s)
		}
	}
	var fresh []point
	for _, p := range pointsOf(o) {
		if r := h.rings[p.subject]; r != nil {
			r.put(slot, p.figures)
		} else {
			fresh = append(fresh, p)
		}
	}
	h.addFresh(fresh, slot)
}

// addFresh begins to remember subjects, as many as there is room for beside those that go on. mu is held.
func (h *History) addFresh(fresh []point, slot int64) {
	var ended []Subject // longest ago first
	if len(h.rings)+len(fresh) > MaxSubjects {
		for s, r := range h.rings {
			if r.latest < slot {
				ended = append(ended, s)
			}
		}
		slices.SortFunc(ended, func(a, b Subject) int { return cmp.Compare(h.rings[a].latest, h.rings[b].latest) })
	}
	for _, p := range fresh {
		r := h.rings[p.subject]
		if r == nil && len(h.rings) >= MaxSubjects {
			if len(ended) == 0 {
				return
			}
			delete(h.rings, ended[0])
			ended = ended[1:]
		}
		if r == nil {
			r = newRing(len(p.figures))
			h.rings[p.subject] = r
		}
		r.put(slot, p.figures)
	}
}

// point is what one overview tells of a subject.
type point struct {
	subject Subject
	figures []float64
}

// pointsOf are an overview's, what people look at first before the rest, should there be no room.
func pointsOf(o *watch.Overview) (all []point) {
	for _, j := range o.Jobs {
		all = append(all, point{Subject{Job: j.Job, Plan: j.Plan, Rank: AllRanks}, jobPoint(j)})
	}
	for _, n := range o.Nodes {
		all = append(all, point{Subject{Node: n.Addr}, nodePoint(n)})
	}
	for _, j := range o.Jobs {
		for _, r := range j.Ranks {
			all = append(all, point{Subject{Job: j.Job, Plan: j.Plan, Rank: int(r.Rank)}, rankPoint(r)})
		}
	}
	return all
}

// Past is what is remembered of a subject.
type Past struct {
	EverySeconds float64           `json:"every_s"`
	Figures      map[string]Points `json:"figures"`
	// Unknown is why there are no figures.
	Unknown string `json:"unknown,omitempty"`
}

// Of is a subject's past; the last points are those of now, or of the slot before while there are none yet.
func (h *History) Of(s Subject, now time.Time) Past {
	p := Past{EverySeconds: Every.Seconds(), Figures: map[string]Points{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[s]
	if r == nil {
		p.Unknown = "nothing is remembered of it yet"
		if len(h.rings) >= MaxSubjects {
			p.Unknown = "there are too many jobs, ranks and nodes to remember this one"
		}
		return p
	}
	until := h.slotOf(now)
	if h.latest < until {
		until--
	}
	for i, name := range s.figures() {
		p.Figures[name] = r.upTo(until, i)
	}
	return p
}

// jobPoint is how a job fares now. While all its loops are blocked for longer than a slot, steps tell nothing of now:
// the wait is all of it then, and no images come.
func jobPoint(j *pb.JobStatus) []float64 {
	heard, blocked := 0, 0
	for _, r := range j.Ranks {
		if r.Silent == nil && (r.StepP50 > 0 || r.Blocked != nil) {
			heard++
			if isBlocked(r) {
				blocked++
			}
		}
	}
	nodes := float64(j.Nodes)
	switch heard {
	case 0:
		return []float64{math.NaN(), math.NaN(), math.NaN(), nodes}
	case blocked:
		return []float64{1, math.NaN(), 0, nodes}
	}
	return []float64{orUnknown(j.Wait), orUnknown(j.Idle), orUnknown(j.Supply), nodes}
}

func isBlocked(r *pb.RankStatus) bool { return r.Blocked.AsDuration() >= Every }

func rankPoint(r *pb.RankStatus) []float64 {
	switch {
	case r.Silent == nil && isBlocked(r):
		return []float64{1, math.NaN(), math.NaN()}
	case r.Silent != nil || r.StepP50 == 0:
		return []float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return []float64{r.Wait, orUnknown(r.Idle), r.StepP50}
}

// nodePoint is what a node does now: nothing is known of one that does not answer.
func nodePoint(n *pb.NodeStatus) []float64 {
	if n.State != "ready" && n.State != "draining" {
		return []float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return []float64{n.SamplesPerSecond, orUnknown(n.EffectiveCores), float64(n.Wants)}
}

func orUnknown(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}
