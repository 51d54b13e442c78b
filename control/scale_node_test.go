package control_test

import (
	"slices"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

const (
	crowdTells  = 0.2  // seconds between two notices of a node that holds wants
	crowdCost   = 0.05 // of the newest batch in what a job's samples cost
	crowdLately = 0.3  // the same, for trainers
)

// node has one core.
type node struct {
	crowd    *crowd
	name     string
	queue    share.Queue[*attempt]
	hand     share.BusyMeter
	stakes   map[string]*stake
	book     pulse.Registry
	streams  []*stream
	law      control.Scaler
	answer   control.Wanted
	slow     float64 // times a sample takes what it does elsewhere
	working  bool
	telling  bool
	dead     bool
	made     int     // samples
	spent    float64 // core-seconds
	measured [2]float64
}

// stake is what a node keeps of a job.
type stake struct {
	account      *share.Account
	cost, lately control.Average
}

func newNode(c *crowd, name string) *node {
	return &node{crowd: c, name: name, hand: share.BusyMeter{Workers: 1}, stakes: map[string]*stake{}, slow: 1}
}

// stake is the job's.
func (n *node) stake(job string) *stake {
	if n.stakes[job] == nil {
		n.stakes[job] = &stake{account: share.NewAccount(1)}
	}
	return n.stakes[job]
}

func (n *node) cost(job string) float64 { return float64(n.stake(job).cost) }

// measure ends a period of the node's own law: how much it does while it has work.
func (n *node) measure() {
	busy := n.hand.Seconds(n.crowd.now)
	load := control.Load{Cores: 1, CoreSeconds: n.spent - n.measured[0], BusySeconds: busy - n.measured[1]}
	n.measured = [2]float64{n.spent, busy}
	n.answer = n.law.DecideNodes(crowdPeriod, nil, []control.Load{load}, -1)
}

// take takes a want.
func (n *node) take(a *attempt, due float64) {
	if n.dead {
		return
	}
	a.stream.last = a.id
	a.stream.open = append(a.stream.open, a)
	a.came, a.left = n.crowd.now, crowdBatch
	a.entry = n.queue.Push(a, a.stream.stake.account, a.want.step, due, crowdBatch)
	n.hand.Add(crowdBatch, n.crowd.now)
	if !n.working {
		n.work()
	}
	if !n.telling {
		n.telling = true
		n.crowd.after(crowdTells, n.tell)
	}
}

// work begins with the next sample.
func (n *node) work() {
	for {
		turn, ok := n.queue.Take(n.crowd.now)
		if n.working = ok; !ok {
			return
		}
		a := turn.Entry.Value
		if a.dropped {
			n.hand.Add(-turn.Count, n.crowd.now)
			continue
		}
		if turn.First == 0 {
			a.begins = n.crowd.now
		}
		n.crowd.after(n.crowd.sampleSeconds(n), func() { n.finish(turn) })
		return
	}
}

// finish ends a sample, and goes on with the next one.
func (n *node) finish(turn share.Portion[*attempt]) {
	if n.dead {
		return
	}
	a := turn.Entry.Value
	n.made++
	n.spent += n.crowd.sampleSeconds(n)
	n.hand.Add(-1, n.crowd.now)
	if a.left--; a.left == 0 && !a.dropped {
		cost := n.crowd.sampleSeconds(n)
		n.queue.RecordCost(a.entry, n.crowd.now-a.begins, cost*crowdBatch)
		k := a.stream.stake
		k.cost.Add(cost, crowdCost)
		k.lately.Add(cost, crowdLately)
		n.end(a, true)
	}
	n.work()
}

// end answers a want.
func (n *node) end(a *attempt, made bool) {
	s := a.stream
	s.open = slices.DeleteFunc(s.open, func(b *attempt) bool { return a == b })
	notice := s.condition()
	n.crowd.send(func() {
		s.noticed(notice)
		s.rank.answered(a, made)
	})
}

// drop gives a want up.
func (n *node) drop(a *attempt) {
	if n.dead || a.left == 0 || a.dropped {
		return
	}
	a.dropped = true
	n.queue.Drop(a.entry)
	n.end(a, false)
	if !n.working {
		n.work()
	}
}

// tell sends a notice to everybody who waits.
func (n *node) tell() {
	n.telling = false
	if n.dead {
		return
	}
	var told []*stream
	var notices []notice
	for _, s := range n.streams {
		if len(s.open) > 0 {
			told, notices = append(told, s), append(notices, s.condition())
		}
	}
	if len(told) == 0 {
		return
	}
	n.telling = true
	n.crowd.after(crowdTells, n.tell)
	n.crowd.send(func() {
		for i, s := range told {
			s.noticed(notices[i])
		}
	})
}

// notice is how a node is, for one trainer.
type notice struct {
	ahead, sample float64
	heard         uint64
	begun         [crowdTold]uint64
}

func (s *stream) condition() notice {
	speed := s.node.answer.Effective
	if speed == 0 {
		speed = 1
	}
	c := notice{s.node.queue.Ahead(s.stake.account) / speed, float64(s.stake.lately) / speed, s.last, [crowdTold]uint64{}}
	for i, a := range s.open {
		if a.begins >= 0 && i < crowdTold {
			c.begun[i] = a.id
		}
	}
	return c
}
