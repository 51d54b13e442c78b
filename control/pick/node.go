// Package pick decides which node a trainer asks for a batch, and when it asks another one too: arithmetic only, in
// seconds and samples, without clock or goroutine. The caller owns the values, and passes time in seconds since
// whatever it likes.
package pick

import (
	"math"
	"slices"

	"github.com/feedwater-io/feedwater/control"
)

const (
	seenWeight = 0.5  // of the newest batch in what a node's samples take
	fadeAfter  = 5.0  // seconds without a want of ours, from which on what is known of a node gets old
	fadeHalf   = 15.0 // seconds in which half of it is forgotten
)

// Node is what a trainer knows of how fast a node is: what the node says, and what came. The zero value knows nothing.
type Node struct {
	ahead, sample float64 // as told: seconds until a further want's turn, and per sample
	toldAt        float64
	seen          control.Average // seconds per sample
	seenAt        float64
	making        Median // seconds from a batch's beginning to its arrival
}

// RecordReport takes what a node says: seconds until it would come to a further want, and seconds per sample, 0 if it
// does not know.
func (n *Node) RecordReport(ahead, sample, now float64) {
	n.ahead, n.sample, n.toldAt = clampSeconds(ahead), clampSeconds(sample), now
}

func clampSeconds(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 0
	}
	return min(x, 24*3600)
}

// RecordArrival takes a batch of so many samples: seconds since the node could turn to it, having sent what it held
// before, and seconds since it began with it as it says itself. The less of them is what the samples took: a batch that
// is due late lies in a queue, and its node is no slower for that.
func (n *Node) RecordArrival(samples int, seconds, making, now float64) {
	if making > 0 {
		seconds = min(seconds, making)
	}
	n.seen.Add(seconds/float64(max(samples, 1)), seenWeight)
	n.seenAt = now
	n.making.Add(making)
}

// RecordWait takes a batch of so many samples that did not come for so many seconds and was taken away.
func (n *Node) RecordWait(samples int, seconds, now float64) {
	n.seen = max(n.seen, control.Average(clampSeconds(seconds)/float64(max(samples, 1))))
	n.seenAt = now
}

// SampleSeconds is how long a sample takes the node: the more of what it says and what is seen; 0: unknown.
func (n *Node) SampleSeconds() float64 { return max(n.sample, float64(n.seen)) }

// UnloadedSeconds is how long a sample takes the node while it works for nobody else: what it says; 0: unknown. What is
// seen holds the node's other work.
func (n *Node) UnloadedSeconds() float64 { return n.sample }

// Load is what a trainer has at a node, and what it would ask for.
type Load struct {
	// Held samples are wanted of it, Unheard of them since it last spoke.
	Held, Unheard int
	// Passed samples, not among Held, it has heard of and would make later, for they are needed later.
	Passed int
	// Waited is for how long nothing has come of them, in seconds per sample of the oldest batch.
	Waited float64
	// Count more would be wanted.
	Count int
	// Usual is what a sample takes the fleet's nodes, for what is unknown or out of date.
	Usual float64
	// Now is the time.
	Now float64
}

// RemoveBatch takes out count samples of a batch that is among those held. heard says whether the node had heard
// of it when it last spoke.
func (l *Load) RemoveBatch(count int, heard bool) {
	l.Held -= count
	if !heard {
		l.Unheard -= count
	}
}

// OvertakeBatch takes out count samples of a batch that is among those held, with which the node has not begun and
// which is needed later than what it is to be asked for.
func (l *Load) OvertakeBatch(count int, heard bool) {
	l.RemoveBatch(count, heard)
	if heard {
		l.Passed += count
	}
}

// FinishSeconds is in how many seconds the node would have made the samples.
func (n *Node) FinishSeconds(l Load) float64 {
	told, seen := n.sample, float64(n.seen)
	if told == 0 {
		told = seen
	}
	if seen == 0 {
		seen = told
	}
	told, seen = l.freshEstimate(told, n.seenAt), max(l.freshEstimate(seen, n.seenAt), clampSeconds(l.Waited))
	ahead := max(n.ahead-(l.Now-n.toldAt)-float64(l.Passed)*told, 0)
	return max(ahead+float64(l.Unheard+l.Count)*told, float64(l.Held+l.Count)*seen)
}

// freshEstimate is what a sample takes, if it was known at a time: a node that was slow and got no wants since may have
// become fast.
func (l *Load) freshEstimate(sample, at float64) float64 {
	idle := l.Now - at - fadeAfter
	switch {
	case sample == 0:
		return l.Usual
	case l.Held > 0 || idle <= 0 || sample <= l.Usual:
		return sample
	}
	return l.Usual + (sample-l.Usual)*math.Exp2(-idle/fadeHalf)
}

// MakeSeconds is how long a batch of count samples takes the node from its beginning to its arrival, other work aside;
// 0: unknown.
func (n *Node) MakeSeconds(count int) float64 {
	return max(float64(count)*n.SampleSeconds(), n.making.Value())
}

// KnownMedian is the median of what samples take nodes, of those of which it is known; otherwise 0.
func KnownMedian(samples []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(samples), func(x float64) bool { return !(x > 0) })
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// Median is that of the last 32 values. The zero value is ready.
type Median struct {
	recent [32]float64
	count  int
}

// Add takes a value; what is not a positive number is left out.
func (m *Median) Add(x float64) {
	if x = clampSeconds(x); x > 0 {
		m.recent[m.count%len(m.recent)] = x
		m.count++
	}
}

// Count is how many values it took.
func (m *Median) Count() int { return m.count }

// Value is the median; 0 before the first value.
func (m *Median) Value() float64 {
	n := min(m.count, len(m.recent))
	if n == 0 {
		return 0
	}
	sorted := m.recent
	slices.Sort(sorted[:n])
	return sorted[n/2]
}
