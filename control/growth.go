package control

const (
	gainLeast  = 0.5 // of what nodes were to bring; with less they have not helped
	spareShare = 1 / headroom
)

// Growth is what a job's latest nodes have brought it. The zero value is ready.
//
// Nodes that share a machine, a disk or a link make one another slower. Each then says that more are needed, and those
// would make all slower still.
type Growth struct {
	nodes, seconds float64 // before the latest came: how many there were, and what a sample took one
	need           float64 // and how many were needed
}

// Bound is how many nodes are asked for of those that are needed, where so many say how fast they are and a sample
// takes one so many seconds. Once more came, what all make together has to have grown by half of what they were to
// bring. Otherwise no more are asked for than were needed before they came, and helps is false.
func (g *Growth) Bound(need, nodes, seconds float64) (bounded float64, helps bool) {
	if nodes > g.nodes && g.need > 0 && g.gain(nodes, seconds) < gainLeast {
		return min(need, g.need), false
	}
	*g = Growth{nodes, seconds, need}
	return need, true
}

// gain is the share of what the nodes that came were to bring, by which all together have become faster.
func (g *Growth) gain(nodes, seconds float64) float64 {
	return (nodes*g.seconds/seconds - g.nodes) / (nodes - g.nodes)
}

// HaveSpareTime reports whether nodes have so much time left that a job which waits does not wait for them. work is how
// many of them what all jobs get keeps at work.
func HaveSpareTime(work float64, nodes int) bool {
	return work > 0 && work < spareShare*float64(nodes)
}
