package pick

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A want waits for a node without room only where that has it in less than half of the time, for forecasts are not
// exact, or in time.
func TestWorthWaiting(t *testing.T) {
	for _, c := range []struct {
		seconds, other, due float64
		want                bool
	}{
		{1, 1, 0, false}, {1, 1.9, 0, false}, {1, 2.1, 0, true}, {0, 0, 0, false},
		{1, 1.9, 1.5, true}, {1, 1.9, 0.9, false}, {1, 1.9, 2, false}, {1, 1, 1, false},
	} {
		if got := worthWaiting(c.seconds, c.other, c.due); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// whom is the candidate that a want of number 1 goes to that is due in so many seconds, -1: none.
func whom(due float64, all []Candidate) int {
	law := NewAssignment(1)
	for i, c := range all {
		c.Node = i
		law.Consider(&c)
	}
	if node, found := law.Node(due); found {
		return node
	}
	return -1
}

// The lowest tier first, of it the one that has the want soonest, but one with room if that has it nearly as soon.
func TestAssign(t *testing.T) {
	type nodes = []Candidate
	for name, c := range map[string]struct {
		due  float64
		all  nodes
		want int
	}{
		"nobody":                       {9, nil, -1},
		"the soonest":                  {9, nodes{{Finish: 2, Room: 1}, {Finish: 1, Room: 1}, {Finish: 3, Room: 1}}, 1},
		"one that has room":            {9, nodes{{Finish: 1}, {Finish: 1.9, Room: 1}}, 1},
		"one more than full":           {9, nodes{{Finish: 1, Room: -1}, {Finish: 1.9, Room: 1}}, 1},
		"worth waiting":                {9, nodes{{Finish: 1}, {Finish: 2.1, Room: 1}}, 0},
		"in time":                      {1.5, nodes{{Finish: 1}, {Finish: 1.9, Room: 1}}, 0},
		"nobody has room":              {9, nodes{{Finish: 2}, {Finish: 1}}, 1},
		"it came back from one":        {9, nodes{{Finish: 1, Room: 1, Failures: 1}, {Finish: 5, Room: 1}}, 1},
		"it was taken from one":        {9, nodes{{Finish: 1, Room: 1, Left: true}, {Finish: 5, Room: 1}}, 1},
		"taken weighs like a failure":  {9, nodes{{Finish: 2, Room: 1, Left: true}, {Finish: 1, Room: 1, Failures: 1}}, 1},
		"and adds to it":               {9, nodes{{Finish: 1, Room: 1, Left: true, Failures: 1}, {Finish: 2, Room: 1, Failures: 1}}, 1},
		"it waits rather than go back": {9, nodes{{Finish: 1, Room: 1, Failures: 1}, {Finish: 5}}, 1},
		"doubted after all others":     {9, nodes{{Finish: 1, Room: 1, Doubted: true}, {Finish: 5, Room: 1, Failures: 1, Left: true}}, 1},
		"all are doubted":              {9, nodes{{Finish: 1, Room: 1, Doubted: true}}, 0},
		"unfit after fit ones":         {9, nodes{{Finish: 1, Room: 1, Unfit: true}, {Finish: 5, Room: 1}}, 1},
		"unfit before doubted ones":    {9, nodes{{Finish: 1, Room: 1, Doubted: true}, {Finish: 5, Room: 1, Unfit: true}}, 1},
		"it helps, late elsewhere":     {4, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true}, {Finish: 5}}, 0},
		"it does not, in time there":   {6, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true}, {Finish: 5}}, 1},
		"it would, but is full":        {4, nodes{{Finish: 1, Doubted: true, Helps: true}, {Finish: 5}}, 1},
		"it would, but failed it":      {4, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true, Failures: 1}, {Finish: 5}}, 1},
		"it is of no help":             {4, nodes{{Finish: 1, Room: 1, Doubted: true}, {Finish: 5}}, 1},
		"unfit ones help too":          {4, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true, Unfit: true}, {Finish: 5}}, 0},
		"one that has room goes first": {4, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true}, {Finish: 5, Room: 1}}, 1},
	} {
		if got := whom(c.due, c.all); got != c.want {
			t.Errorf("%s: node %d, want %d", name, got, c.want)
		}
	}
}

// Nodes that would have a want equally soon get every other one, whichever is seen first.
func TestAssignTies(t *testing.T) {
	a, b := Candidate{Node: 0, Room: 1, Score: NodeScore("job", "a")}, Candidate{Node: 1, Room: 1, Score: NodeScore("job", "b")}
	first := 0
	for want := range uint64(1000) {
		one, other := NewAssignment(want), NewAssignment(want)
		one.Consider(&a)
		one.Consider(&b)
		other.Consider(&b)
		other.Consider(&a)
		node, _ := one.Node(0)
		if again, _ := other.Node(0); again != node {
			t.Fatalf("want %d goes to node %d, or to %d if that is seen first", want, node, again)
		}
		if (BreakTie(a.Score, want) > BreakTie(b.Score, want)) != (node == 0) {
			t.Fatalf("want %d goes to node %d", want, node)
		}
		first += 1 - node
	}
	if first < 420 || first > 580 {
		t.Errorf("%d of 1000", first)
	}
}

// In whichever order candidates are considered, the same one is found.
func TestAssignOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		all := make([]Candidate, 1+r.IntN(6))
		for i := range all {
			all[i] = Candidate{
				Node: i, Failures: r.IntN(MostTries), Left: r.IntN(4) == 0, Doubted: r.IntN(3) == 0,
				Helps: r.IntN(2) == 0, Unfit: r.IntN(4) == 0,
				Finish: float64(r.IntN(5)), Room: r.IntN(4) - 1, Score: uint64(i),
			}
		}
		due := float64(r.IntN(6)) - 0.5
		assigned, rescued := choose(all, due)
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if a, b := choose(all, due); a != assigned || b != rescued {
			t.Fatalf("%+v, due in %g s: nodes %d and %d, then %d and %d", all, due, assigned, rescued, a, b)
		}
	}
}

// choose is the node by Assignment, and that by Rescue, -1: none.
func choose(all []Candidate, due float64) (assigned, rescued int) {
	assignment, rescue := NewAssignment(7), NewRescue(7, due, false)
	for i := range all {
		assignment.Consider(&all[i])
		rescue.Consider(&all[i])
	}
	assigned, _ = assignment.Node(due)
	rescued, _, found := rescue.Node()
	if !found {
		rescued = -1
	}
	return assigned, rescued
}

// A full node gets one want more if it would be in time there, or if the node that has it has begun with it.
func TestRescue(t *testing.T) {
	type nodes = []Candidate
	for name, c := range map[string]struct {
		due    float64
		begun  bool
		all    nodes
		want   int
		finish float64
	}{
		"nobody":                 {9, false, nil, -1, math.Inf(1)},
		"the soonest":            {1, false, nodes{{Finish: 3, Room: 1}, {Finish: 2, Room: 1}}, 1, 2},
		"full, in time":          {9, false, nodes{{Finish: 1}, {Finish: 2, Room: 1}}, 0, 1},
		"full, late":             {1, false, nodes{{Finish: 1}, {Finish: 2, Room: 1}}, 1, 2},
		"full, late, begun":      {1, true, nodes{{Finish: 1}, {Finish: 2, Room: 1}}, 0, 1},
		"full and one more":      {9, true, nodes{{Finish: 1, Room: -1}}, -1, math.Inf(1)},
		"doubted":                {9, true, nodes{{Finish: 1, Room: 1, Doubted: true, Helps: true}}, -1, math.Inf(1)},
		"unfit":                  {9, true, nodes{{Finish: 1, Room: 1, Unfit: true}}, -1, math.Inf(1)},
		"it was taken from one":  {9, false, nodes{{Finish: 1, Room: 1, Left: true}, {Finish: 2, Room: 1}}, 1, 2},
		"it came back from one":  {9, false, nodes{{Finish: 1, Room: 1, Failures: 1}, {Finish: 2, Room: 1}}, 1, 2},
		"from the only one left": {9, false, nodes{{Finish: 1, Room: 1, Left: true}}, 0, 1},
	} {
		law := NewRescue(1, c.due, c.begun)
		for i, n := range c.all {
			n.Node = i
			law.Consider(&n)
		}
		node, finish, found := law.Node()
		if !found {
			node = -1
		}
		if node != c.want || finish != c.finish {
			t.Errorf("%s: node %d in %g s, want %d in %g s", name, node, finish, c.want, c.finish)
		}
	}
}

// What is planned for a node counts until Begin; a want sent to it changes only what it was asked for.
func TestHand(t *testing.T) {
	var h Backlog
	check := func(what string, held, unheard int) {
		t.Helper()
		if got, want := h.LoadWith(5), (Load{Held: held, Unheard: unheard, Count: 5, Now: 3}); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	h.Reset(Load{Held: 10, Unheard: 4, Now: 3})
	check("at first", 10, 4)
	h.AddPlanned(2)
	h.AddPlanned(3)
	check("two wait", 15, 9)
	h.SetLoad(Load{Held: 20, Unheard: 14, Now: 3})
	check("one was sent", 25, 19)
	h.Reset(Load{Held: 20, Now: 3})
	check("anew", 20, 0)
}

// A batch that is overtaken stays what the node has heard of; one that is removed does not.
func TestLoadOvertake(t *testing.T) {
	for _, c := range []struct {
		heard    bool
		overtake Load
		remove   Load
	}{
		{true, Load{Held: 6, Unheard: 5, Passed: 5}, Load{Held: 6, Unheard: 5, Passed: 1}},
		{false, Load{Held: 6, Unheard: 1, Passed: 1}, Load{Held: 6, Unheard: 1, Passed: 1}},
	} {
		overtaken := Load{Held: 10, Unheard: 5, Passed: 1}
		removed := overtaken
		overtaken.OvertakeBatch(4, c.heard)
		removed.RemoveBatch(4, c.heard)
		if overtaken != c.overtake || removed != c.remove {
			t.Errorf("heard of: %v; overtaken: %+v, removed: %+v", c.heard, overtaken, removed)
		}
	}
}

func TestInFlight(t *testing.T) {
	for _, c := range [][3]int{{1, 8, 3}, {16, 8, 4}, {16, 10, 4}, {16, 32, 3}, {64, 1, 128}, {2, 0, 4}} {
		if got := InFlight(c[0], c[1]); got != c[2] {
			t.Errorf("%d cores, batches of %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestCost(t *testing.T) {
	near(t, "of none", SampleCost([]float64{0}), UnknownCost)
	near(t, "of some", SampleCost([]float64{0, 3, 1, 2}), 2)
}
