package main

import (
	"math/rand/v2"
	"slices"
)

// arrowsUp returns the fewest arrows that it finds such that without them the files stand in an order in which every
// arrow points down. To find the fewest of all is NP-hard: this moves one file after the other to where it is best,
// from several starts, and gives the same answer each time.
func arrowsUp(arrows []arrow) []arrow {
	g := newGraph(arrows)
	random := rand.New(rand.NewPCG(1, 2))
	best, fewest := []int(nil), len(arrows)+1
	for range 40 {
		order := random.Perm(len(g.names))
		g.improve(order)
		if up := g.up(order); up < fewest {
			best, fewest = slices.Clone(order), up
		}
	}
	at := positions(best)
	var up []arrow
	for _, a := range arrows {
		if at[g.index[a.from]] > at[g.index[a.to]] {
			up = append(up, a)
		}
	}
	return up
}

// graph is which file uses which.
type graph struct {
	names []string
	index map[string]int
	uses  [][]bool
}

func newGraph(arrows []arrow) *graph {
	g := &graph{index: map[string]int{}}
	for _, a := range arrows {
		for _, name := range []string{a.from, a.to} {
			if _, ok := g.index[name]; !ok {
				g.index[name] = len(g.names)
				g.names = append(g.names, name)
			}
		}
	}
	g.uses = make([][]bool, len(g.names))
	for i := range g.uses {
		g.uses[i] = make([]bool, len(g.names))
	}
	for _, a := range arrows {
		g.uses[g.index[a.from]][g.index[a.to]] = true
	}
	return g
}

// up counts the arrows that lead to an earlier file of the order, in which users stand first.
func (g *graph) up(order []int) int {
	n := 0
	for i, user := range order {
		for _, used := range order[:i] {
			n += count(g.uses[user][used])
		}
	}
	return n
}

// improve moves files while that leaves fewer arrows up.
func (g *graph) improve(order []int) {
	for moved := true; moved; {
		moved = false
		for file := range g.names {
			from := slices.Index(order, file)
			if to := g.bestPlace(order, from); to != from {
				rest := slices.Delete(order, from, from+1)
				copy(order, slices.Insert(slices.Clone(rest), to, file))
				moved = true
			}
		}
	}
}

// bestPlace is where in the order the file at a place adds the fewest arrows up.
func (g *graph) bestPlace(order []int, from int) int {
	file, best, to := order[from], 0, from
	change := 0
	for i := from - 1; i >= 0; i-- { // past order[i], upwards
		change += count(g.uses[order[i]][file]) - count(g.uses[file][order[i]])
		if change < best {
			best, to = change, i
		}
	}
	change = 0
	for i := from + 1; i < len(order); i++ {
		change += count(g.uses[file][order[i]]) - count(g.uses[order[i]][file])
		if change < best {
			best, to = change, i
		}
	}
	return to
}

func positions(order []int) []int {
	at := make([]int, len(order))
	for i, file := range order {
		at[file] = i
	}
	return at
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
