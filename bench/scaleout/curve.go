package main

import (
	"fmt"
	"slices"
	"strings"
)

// curve is what was measured.
type curve struct {
	// Rate is what a node makes, in samples a second; Ranks and Batch are the job's.
	Rate         float64 `json:"rate"`
	Ranks, Batch int
	// Rounds are samples a second, by round and number of nodes.
	Rounds [][]float64 `json:"rounds"`
}

// least is the share of linear that the most nodes have to reach.
const least = 0.97

// shares of linear of the i-th number of nodes, least first: one of each round, over what one node gave in it.
func (c *curve) shares(i int) []float64 {
	var all []float64
	for _, r := range c.Rounds {
		all = append(all, r[i]/r[0]*float64(counts[0])/float64(counts[i]))
	}
	slices.Sort(all)
	return all
}

func median(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func (c *curve) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nodes of %g samples a second; %d ranks with batches of %d; medians of %d rounds\n\n", c.Rate, c.Ranks, c.Batch, len(c.Rounds))
	fmt.Fprintf(&b, "nodes  samples/s  share of linear (range)\n")
	for i, n := range counts {
		var speeds []float64
		for _, r := range c.Rounds {
			speeds = append(speeds, r[i])
		}
		slices.Sort(speeds)
		s := c.shares(i)
		fmt.Fprintf(&b, "%5d  %9.0f  %.3f (%.3f … %.3f)\n", n, median(speeds), median(s), s[0], s[len(s)-1])
	}
	return b.String()
}

func (c *curve) check() error {
	last := len(counts) - 1
	if s := median(c.shares(last)); s < least {
		return fmt.Errorf("%d nodes give %.3f of linear, less than %g", counts[last], s, least)
	}
	return nil
}

const width, height, left, top = 480.0, 300.0, 44.0, 24.0

// draw is the curve as a picture: speed over that of one node, by nodes, and the line that it would follow at best.
func (c *curve) draw() string {
	most := float64(counts[len(counts)-1])
	x := func(n float64) float64 { return left + n/most*width }
	y := func(v float64) float64 { return top + (1-v/most)*height }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">
<style>text{fill:#333}.grid{stroke:#ddd}.linear{stroke:#2e7d32;stroke-width:1;stroke-dasharray:4 3}.got{fill:none;stroke:#1769aa;stroke-width:2}.at{fill:#1769aa}
@media(prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#444}.linear{stroke:#81c784}.got{stroke:#64b5f6}.at{fill:#64b5f6}}</style>
`, left+width+70, top+height+50)
	for _, n := range counts {
		v := float64(n)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%d ×</text><text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`+"\n",
			left, left+width, y(v), y(v), left-4, y(v)+4, n, x(v), top+height+14, n)
	}
	fmt.Fprintf(&b, `<line class="linear" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`+"\n", x(0), x(most), y(0), y(most))
	path, marks := "", ""
	for i, n := range counts {
		s := median(c.shares(i))
		at := s * float64(n)
		path += fmt.Sprintf(" %.1f,%.1f", x(float64(n)), y(at))
		marks += fmt.Sprintf(`<circle class="at" cx="%.1f" cy="%.1f" r="3.5"/><text x="%.1f" y="%.1f">%.3f</text>`+"\n", x(float64(n)), y(at), x(float64(n))+8, y(at)+10, s)
	}
	fmt.Fprintf(&b, `<polyline class="got" points="%s"/>`+"\n%s", strings.TrimSpace(path), marks)
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f">blue: what a job gets of so many nodes of %g samples a second, over what it gets of one, and the share of</text><text x="%.1f" y="%.1f">linear (green); %d ranks that step together, medians of %d rounds</text></svg>`+"\n",
		left, top+height+28, c.Rate, left, top+height+42, c.Ranks, len(c.Rounds))
	return b.String()
}
