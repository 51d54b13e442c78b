package control

const (
	gainLeast   = 0.5 // of what nodes were to bring; with less they have not helped
	takenMost   = 0.5 // of what nodes make themselves: what they may take from others
	knownBySecs = 60  // seconds after which nodes that were there show what others take from them
	spareShare  = 1 / headroom
)

// Growth is what a job's latest nodes have brought it. The zero value is ready.
//
// Nodes that share a machine, a disk or a link make one another slower. Each then says that more are needed, and those
// would make all slower still.
type Growth struct {
	rates  map[string]float64 // samples per second before the latest came, by node
	need   float64            // and how many were needed
	waited float64            // seconds since they came
}

// Bound is how many nodes are asked for of those that are needed, so many seconds after the last call. rates are samples
// per second, by node that says it; Bound keeps them. Once more came, what all make together has to have grown by half
// of what they were to bring. Otherwise no more are asked for than were needed before they came, and helps is false;
// but not for long where they are slow by themselves, and take little from those that were there.
func (g *Growth) Bound(seconds, need float64, rates map[string]float64) (bounded float64, helps bool) {
	if more := len(rates) - len(g.rates); more > 0 && g.need > 0 {
		g.waited += seconds
		least := gainLeast * float64(more) * meanOf(g.rates)
		if sumOf(rates)-sumOf(g.rates) < least && (g.waited < knownBySecs || g.takesMuch(rates)) {
			return min(need, g.need), false
		}
	}
	*g = Growth{rates: rates, need: need}
	return need, true
}

// takesMuch reports whether nodes that came take more from those that were there than half of what they make.
func (g *Growth) takesMuch(rates map[string]float64) bool {
	came, taken := 0.0, 0.0
	for node, rate := range rates {
		if before, there := g.rates[node]; there {
			taken += before - rate
		} else {
			came += rate
		}
	}
	return taken > takenMost*came
}

// sumOf is what nodes make together.
func sumOf(rates map[string]float64) (sum float64) {
	for _, rate := range rates {
		sum += rate
	}
	return sum
}

// meanOf is what one makes, of nodes of which there are some.
func meanOf(rates map[string]float64) float64 { return sumOf(rates) / float64(len(rates)) }

// HaveSpareTime reports whether nodes have so much time left that a job which waits does not wait for them. work is how
// many of them what all jobs get keeps at work.
func HaveSpareTime(work float64, nodes int) bool {
	return work > 0 && work < spareShare*float64(nodes)
}
