package control

import "math"

// NodeEstimate is how many nodes a job takes, by what all nodes say of it. The zero value is ready.
type NodeEstimate struct {
	most float64 // nodes that one said
	// demand is samples per second with headroom, the most that one said; infinite where one does not say how fast it is.
	demand float64
	supply float64            // samples per second that the job gets, the most that one said
	rates  map[string]float64 // samples per second, by node that says it
	blind  bool
}

// Add takes what a node says, each node once: that so many like it would do, and for how many seconds it works on a
// sample; 0: unknown. blind tells that they may be too few. A node that hears some of the job's ranks may read less demand off
// them than there is, never more, so the largest demand is believed; but how fast nodes are is the mean of what all
// say. By the word of the slowest alone the job would get as many as if all were as slow.
func (c *NodeEstimate) Add(node string, nodes int, seconds float64, blind bool) {
	n := float64(nodes)
	if n >= c.most {
		c.blind = blind || n == c.most && c.blind
		c.most = n
	}
	if rate := 1 / seconds; rate > 0 && !math.IsInf(rate, 0) {
		if c.rates == nil {
			c.rates = map[string]float64{}
		}
		c.rates[node] = rate
		c.demand = max(c.demand, n*rate)
	} else if n > 0 {
		c.demand = math.Inf(1)
	}
}

// Nodes that the job takes; 0: unknown. blind tells that they may be too few.
func (c *NodeEstimate) Nodes() (nodes float64, blind bool) {
	if len(c.rates) == 0 {
		return c.most, c.blind
	}
	return min(c.most, math.Ceil(c.demand/meanOf(c.rates)-1e-9)), c.blind
}

// AddSupply takes the samples per second that the job gets, as one node reads it off the job's steps.
func (c *NodeEstimate) AddSupply(samples float64) {
	if samples > 0 && !math.IsInf(samples, 0) {
		c.supply = max(c.supply, samples)
	}
}

// Work is how many nodes what the job gets keeps at work; 0: unknown.
func (c *NodeEstimate) Work() float64 {
	if len(c.rates) == 0 {
		return 0
	}
	return c.supply / meanOf(c.rates)
}

// Bound is the job's Nodes, bounded by what the nodes that came last have brought, so many seconds after the last call.
func (c *NodeEstimate) Bound(g *Growth, seconds float64) (nodes float64, blind bool) {
	nodes, blind = c.Nodes()
	if len(c.rates) == 0 {
		return nodes, blind
	}
	nodes, helps := g.Bound(seconds, nodes, c.rates)
	return nodes, blind && helps
}
