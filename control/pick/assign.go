package pick

import (
	"cmp"
	"math"
)

// MostTries is how many failures of a node's own a want bears before that node is not asked for it again.
const MostTries = 2

// doubtTiers and unfitTiers are how many tiers later nodes go that are doubted, after all that a want came back from,
// and that are unfit for it.
const (
	doubtTiers = MostTries + 1
	unfitTiers = 1
)

// UnknownCost is assumed of samples while nothing is known of any, in core-seconds.
const UnknownCost = 0.008

// SampleCost is what a sample costs, in core-seconds, by what it costs each node, 0: unknown.
func SampleCost(nodes []float64) float64 { return cmp.Or(KnownMedian(nodes), UnknownCost) }

// InFlight is how many wants of count samples keep a node busy: max(3, ⌈2 × cores ÷ batch⌉). More would only pile work
// up where nobody else can take it.
func InFlight(workers, count int) int {
	count = max(count, 1)
	return max(3, (2*workers+count-1)/count)
}

// Candidate is a node that may be asked for a want and does not have it.
type Candidate struct {
	// Node is what the caller calls it.
	Node int
	// Failures is how often it failed the want; Left says that the want was taken from it last.
	Failures int
	Left     bool
	// Doubted says that the node is, and Helps that it may have what would come too late from others all the same; see
	// Trust.
	Doubted, Helps bool
	// Unfit says that it refused wants for its build, and that this one is not for trying whether it still does.
	Unfit bool
	// Finish is in how many seconds it would have made the want.
	Finish float64
	// Room is how many such wants more it may get: InFlight less those that it has. It may be negative.
	Room int
	// Score is its place in the trainer's order of preference, which breaks ties.
	Score uint64
}

// tier is how often the want came back from the node: a lower one goes first.
func (c *Candidate) tier() int {
	if c.Left {
		return c.Failures + 1
	}
	return c.Failures
}

// extraTiers is how many tiers later the node goes for what other wants met there.
func (c *Candidate) extraTiers() (tiers int) {
	if c.Doubted {
		tiers += doubtTiers
	}
	if c.Unfit {
		tiers += unfitTiers
	}
	return tiers
}

// leader is the candidate that goes first of those that it was shown: the one of the lowest tier, and of these the one
// that has the want soonest.
type leader struct {
	node   int
	tier   int
	finish float64
	score  uint64
	found  bool
}

// offer takes a candidate into account, as one of a tier, for the want of a number.
func (f *leader) offer(c *Candidate, tier int, want uint64) {
	if f.found && !f.isBeatenBy(c, tier, want) {
		return
	}
	*f = leader{c.Node, tier, c.Finish, c.Score, true}
}

// isBeatenBy reports whether a candidate goes before it.
func (f *leader) isBeatenBy(c *Candidate, tier int, want uint64) bool {
	if order := cmp.Or(cmp.Compare(tier, f.tier), cmp.Compare(c.Finish, f.finish)); order != 0 {
		return order < 0
	}
	return BreakTie(c.Score, want) > BreakTie(f.score, want)
}

// Assignment finds the node for a want: the one that will have it soonest, but one that has room for it if that has it
// nearly as soon. Make one with NewAssignment, show it all candidates in any order, and then ask for the Node.
type Assignment struct {
	want                 uint64
	best, roomy, helping leader
}

// NewAssignment begins with the want of that number.
func NewAssignment(want uint64) Assignment { return Assignment{want: want} }

// Consider takes a node into account.
func (a *Assignment) Consider(c *Candidate) {
	tier := c.tier()
	if tier == 0 && c.Helps && c.Room > 0 {
		a.helping.offer(c, tier, a.want)
	}
	tier += c.extraTiers()
	a.best.offer(c, tier, a.want)
	if c.Room > 0 {
		a.roomy.offer(c, tier, a.want)
	}
}

// Node is the one for a want that is due in so many seconds, negative: it is late. It need not have room: then the
// want waits for it. found is false if there was no candidate.
func (a *Assignment) Node(due float64) (node int, found bool) {
	if a.roomy.found && a.roomy.tier == a.best.tier && !worthWaiting(a.best.finish, a.roomy.finish, due) {
		return a.roomy.node, true // the best itself, if it has room
	}
	if a.helping.found && due < a.best.finish {
		return a.helping.node, true
	}
	return a.best.node, a.best.found
}

// waitGain is the share of the time that another node takes, within which a node without room has to be done with a
// want that waits for it. What is known of nodes is not exact: with less to gain a want would be held back again and
// again, by whichever of many nodes seems quickest, while wants that are needed later go to those that have room.
const waitGain = 0.5

// worthWaiting reports whether a want that is due in so many seconds waits for a node that has no room for it and
// would have made it in seconds, while another one takes it now and has it in other seconds: that is much later, or
// too late.
func worthWaiting(seconds, other, due float64) bool {
	return seconds < waitGain*other || seconds <= due && due < other
}

// Rescue finds the node, not a doubted one, that would have a want soonest which is needed next and is at another
// node, or was. It makes it before what is needed later: Finish is by Load.OvertakeBatch. Nodes are full most of the
// time, for what they made is replaced at once: for one that its node has begun with, of which there are few, or that
// would be in time there, a node may get one want more than it takes. Make one with NewRescue.
type Rescue struct {
	want  uint64
	due   float64
	begun bool
	best  leader
}

// NewRescue begins with the want of that number, due in so many seconds. begun says that the node that has it has
// begun with it.
func NewRescue(want uint64, due float64, begun bool) Rescue {
	return Rescue{want: want, due: due, begun: begun}
}

// Admits reports whether a node may be asked at all, whatever its Finish, which need not be known.
func (r *Rescue) Admits(c *Candidate) bool { return !c.Doubted && !c.Unfit && c.Room >= 0 }

// Consider takes a node into account.
func (r *Rescue) Consider(c *Candidate) {
	if r.Admits(c) && (c.Room > 0 || r.begun || c.Finish < r.due) {
		r.best.offer(c, c.tier(), r.want)
	}
}

// Node is the one to be asked, and in how many seconds it would have the want: forever, if there is none and found is
// false.
func (r *Rescue) Node() (node int, finish float64, found bool) {
	if !r.best.found {
		return 0, math.Inf(1), false
	}
	return r.best.node, r.best.finish, true
}

// Backlog is the work of a node while wants are assigned: what was asked of it, and what was planned for it besides.
// The zero value is empty.
type Backlog struct {
	load    Load
	planned int // samples of wants that wait for it to have room
}

// Reset forgets what was planned, for a node that has a load.
func (h *Backlog) Reset(load Load) { *h = Backlog{load: load} }

// SetLoad takes the node's load when a want was sent to it. What was planned stays.
func (h *Backlog) SetLoad(load Load) { h.load = load }

// AddPlanned has a want of count samples wait for the node.
func (h *Backlog) AddPlanned(count int) { h.planned += count }

// LoadWith is the node's with a want of count samples, behind all that was asked of it and planned for it.
func (h *Backlog) LoadWith(count int) Load {
	load := h.load
	load.Held, load.Unheard, load.Count = load.Held+h.planned, load.Unheard+h.planned, count
	return load
}
