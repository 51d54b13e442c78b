package pick

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// What a node says and what was seen of it both count, whichever is worse; what it had not heard of is on top of what
// it says.
func TestFinish(t *testing.T) {
	var n Node
	near(t, "unknown", n.FinishSeconds(Load{Held: 10, Unheard: 10, Count: 5, Usual: 0.1}), 1.5)
	n.RecordReport(2, 0.1, 0)
	near(t, "told", n.FinishSeconds(Load{Held: 10, Unheard: 4, Count: 5, Usual: 1}), 2+0.9)
	near(t, "told a second ago", n.FinishSeconds(Load{Held: 10, Unheard: 4, Count: 5, Usual: 1, Now: 1}), 1+0.9)
	near(t, "told long ago", n.FinishSeconds(Load{Held: 10, Count: 5, Usual: 1, Now: 100}), 1.5)
	near(t, "before what it holds", n.FinishSeconds(Load{Held: 2, Count: 5, Passed: 8, Usual: 1, Now: 1}), 0.2+0.5)
	near(t, "before all of it", n.FinishSeconds(Load{Count: 5, Passed: 100, Usual: 1, Now: 1}), 0.5)
	n.RecordArrival(10, 3, 4, 0) // 0.3 s a sample
	near(t, "seen to be slower", n.FinishSeconds(Load{Held: 10, Unheard: 4, Count: 5, Usual: 1, Now: 1}), 15*0.3)
	near(t, "and late", n.FinishSeconds(Load{Held: 10, Count: 5, Waited: 2, Usual: 1, Now: 1}), 30)
	near(t, "a make", n.MakeSeconds(25), 7.5)
	near(t, "a short one", n.MakeSeconds(1), 4)
	var patient Node
	patient.RecordArrival(10, 6, 1, 0) // it was due late, and lay in the queue
	near(t, "no slower for waiting", patient.FinishSeconds(Load{Count: 10, Usual: 1}), 1)
}

// A node that was slow and has held nothing since is given another chance, at first a small one.
func TestOldEstimatesFade(t *testing.T) {
	var n Node
	n.RecordArrival(1, 5, 5, 0)
	for now, want := range map[float64]float64{4: 5, 5: 5, 20: 3, 35: 2, 1e6: 1} {
		near(t, fmt.Sprintf("after %g s", now), n.FinishSeconds(Load{Count: 1, Usual: 1, Now: now}), want)
	}
	near(t, "busy all the time", n.FinishSeconds(Load{Held: 1, Count: 1, Usual: 1, Now: 1e6}), 10)
	var fast Node
	fast.RecordArrival(1, 0.5, 0.5, 0)
	near(t, "a fast one stays fast", fast.FinishSeconds(Load{Count: 1, Usual: 1, Now: 1e6}), 0.5)
}

// A node that becomes five times slower is known to be after two batches, and what was taken from it counts.
func TestSlowNodeIsKnownSoon(t *testing.T) {
	var n Node
	for range 50 {
		n.RecordArrival(1, 0.1, 0.1, 0)
	}
	n.RecordArrival(1, 0.5, 0.5, 0)
	n.RecordArrival(1, 0.5, 0.5, 0)
	if got := n.SampleSeconds(); got < 0.35 {
		t.Errorf("%g s a sample", got)
	}
	n.RecordWait(1, 3, 0)
	near(t, "waited for", n.SampleSeconds(), 3)
	n.RecordWait(1, 1, 0)
	near(t, "waited for less", n.SampleSeconds(), 3)
}

// Whatever a node says, an estimate is finite and no less than nothing.
func TestNonsense(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300} {
		var n Node
		n.RecordReport(x, x, 0)
		n.RecordArrival(1, x, x, 0)
		n.RecordWait(1, x, 0)
		f := n.FinishSeconds(Load{Held: 1, Unheard: 1, Count: 1, Waited: x, Usual: 0.1})
		if !(f >= 0) || math.IsInf(f, 0) {
			t.Errorf("%g of %g", f, x)
		}
	}
}

func TestChoose(t *testing.T) {
	begun := Attempt{Due: 1, Age: 10, Begun: 2.1, Forecast: 1, Make: 1, Rest: 3}
	waits := Attempt{Due: 1, Age: 1, Begun: -1, Forecast: 1, Make: 1, Rest: 3, Takes: 1}
	for name, c := range map[string]struct {
		a     Attempt
		other float64
		want  Choice
		but   func(*Attempt)
	}{
		"straggler":                    {begun, 1, Hedge, nil},
		"not needed yet":               {begun, 1, Leave, func(a *Attempt) { a.Due = 2 }},
		"needed, the other has a lot":  {begun, 3, Hedge, func(a *Attempt) { a.Due = 3.9 }},
		"begun lately":                 {begun, 1, Leave, func(a *Attempt) { a.Begun = 1.9 }},
		"nobody knows a make":          {begun, 0.1, Leave, func(a *Attempt) { a.Make = 0 }},
		"just in time":                 {begun, 1, Hedge, func(a *Attempt) { a.Due, a.Begun = 0.9, 1.1 }},
		"that, and begun lately":       {begun, 1, Leave, func(a *Attempt) { a.Due, a.Begun = 0.9, 0.9 }},
		"the other has less":           {waits, 1.4, Move, nil},
		"the other has as much":        {waits, 1.6, Leave, nil},
		"late here, in time there":     {waits, 1.7, Move, func(a *Attempt) { a.Due, a.Rest = 2, 1.8 }},
		"late there, too":              {waits, 1.7, Leave, func(a *Attempt) { a.Due, a.Rest = 1.6, 1.8 }},
		"in time here, too":            {waits, 1.7, Leave, func(a *Attempt) { a.Due, a.Rest, a.Make, a.Takes = 2.6, 1.8, 0.7, 0.7 }},
		"this one should have begun":   {waits, 0.2, Move, func(a *Attempt) { a.Due, a.Rest = 0.9, 0 }},
		"and has it hardly later":      {waits, 0.6, Leave, func(a *Attempt) { a.Due, a.Rest = 0.9, 0 }},
		"begun, foreseeably late":      {begun, 0.2, Hedge, func(a *Attempt) { a.Due, a.Begun, a.Takes = 0.7, 0.2, 1 }},
		"that on a node now slow":      {begun, 0.2, Hedge, func(a *Attempt) { a.Due, a.Begun, a.Make, a.Takes = 0.3, 0.2, 0.2, 1 }},
		"begun, just in time":          {begun, 0.2, Leave, func(a *Attempt) { a.Due, a.Begun, a.Takes = 0.9, 0.2, 1 }},
		"begun, little to gain":        {begun, 0.5, Leave, func(a *Attempt) { a.Due, a.Begun, a.Takes = 0.7, 0.2, 1 }},
		"begun, late there, too":       {begun, 0.2, Hedge, func(a *Attempt) { a.Due, a.Begun, a.Takes = 0.1, 0.2, 1 }},
		"that, and hardly sooner":      {begun, 0.5, Leave, func(a *Attempt) { a.Due, a.Begun, a.Takes = 0.1, 0.2, 1 }},
		"this one comes to it before":  {waits, 1.7, Leave, func(a *Attempt) { a.Due, a.Rest = 2, 1.6 }},
		"the node has not heard of it": {waits, 0.1, Leave, func(a *Attempt) { a.Age = 0.1 }},
		"twice the forecast":           {waits, 2, Move, func(a *Attempt) { a.Age = 2.1 }},
		"and the other takes longer":   {waits, 2.2, Leave, func(a *Attempt) { a.Age = 2.1 }},
		"far from needed":              {waits, 0.1, Leave, func(a *Attempt) { a.Due = 2 }},
		"moved three times":            {waits, 0.1, Move, func(a *Attempt) { a.Moves = 3 }},
		"moved too often for its age":  {waits, 0.1, Leave, func(a *Attempt) { a.Moves = 4 }},
		"and for its forecast":         {waits, 2, Leave, func(a *Attempt) { a.Age, a.Moves = 2.1, 5 }},
	} {
		if c.but != nil {
			c.but(&c.a)
		}
		if got := c.a.Choose(c.other); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// One hedge for twenty wants, and ten at most at once.
func TestHedgeBudget(t *testing.T) {
	var b HedgeBudget
	take := func() (n int) {
		for b.TakeHedge() {
			n++
		}
		return n
	}
	if n := take(); n != 2 {
		t.Errorf("%d hedges before any want", n)
	}
	for range 100 {
		b.AddWant()
	}
	if n := take(); n < 4 || n > 5 {
		t.Errorf("%d hedges for 100 wants", n)
	}
	for range 10000 {
		b.AddWant()
	}
	if n := take(); n < 9 || n > 10 {
		t.Errorf("%d hedges at once", n)
	}
}

func TestDeadline(t *testing.T) {
	var took Median
	near(t, "no answer", Deadline(&took, 0), 120)
	took.Add(0.01)
	near(t, "a short one", Deadline(&took, 0), 10)
	took.Add(1.99)
	took.Add(1)
	near(t, "three answers", Deadline(&took, 0), 20)
	var slow Median
	slow.Add(2)
	near(t, "a long one", Deadline(&slow, 0), 80)
	slow.Add(2000)
	near(t, "longer than the guess", Deadline(&slow, 0), 120)
	near(t, "after two misses", Deadline(&took, 2), 40)
	near(t, "after many", Deadline(&took, 60), 20*64)
	var making Median
	for range 40 {
		took.Add(1)
		making.Add(0.01)
	}
	near(t, "short ones", Deadline(&making, 0), 5)
	for _, c := range []struct {
		age, begun float64
		missed     int
		want       bool
	}{{19, -1, 0, false}, {20, -1, 0, true}, {20, -1, 2, false}, {19, 4.9, 0, false}, {19, 5, 0, true}, {19, 5, 2, false}} {
		if got := IsExpired(c.age, c.begun, &took, &making, c.missed); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Two failures in a row bring doubt, and a batch ends it; probes come after 1, 2, 4 … 30 s.
func TestTrust(t *testing.T) {
	var n Trust
	n.RecordFailure(0)
	n.RecordDelivery(0)
	n.RecordFailure(1)
	if n.IsDoubted() || n.TakeProbe(100) {
		t.Error("doubted for a failure now and then")
	}
	n.RecordFailure(2)
	if !n.IsDoubted() || n.TakeProbe(2.9) {
		t.Error("not doubted after two, or probed at once")
	}
	at := 3.0
	for i, wait := range []float64{2, 4, 8, 16, 30, 30} {
		if !n.TakeProbe(at) || n.TakeProbe(at+wait-0.1) {
			t.Errorf("probe %d", i)
		}
		n.RecordFailure(at)
		at += wait
	}
	if n.MayHelp() {
		t.Error("of help, while it fails")
	}
	n.RecordDelivery(at)
	if n.IsDoubted() {
		t.Error("doubted after a batch")
	}
	n.RecordDamage(0)
	if !n.IsDoubted() || n.TakeProbe(59) || !n.TakeProbe(60) || n.TakeProbe(119) || !n.TakeProbe(120) {
		t.Error("damage is no less than that")
	}
}

// Damage is doubted for a minute, whatever else comes; as long as most of what comes is right the node helps.
func TestTrustAfterDamage(t *testing.T) {
	var n Trust
	now := 0.0
	for range 100 { // one batch in seven
		n.RecordDamage(now)
		if !n.MayHelp() {
			t.Fatal("of no help with one wrong batch in seven")
		}
		for range 6 {
			now++
			n.RecordDelivery(now)
		}
		if !n.IsDoubted() {
			t.Fatal("trusted within seconds of damage")
		}
	}
	n.RecordDelivery(now + 60)
	if n.IsDoubted() || n.MayHelp() {
		t.Error("doubted after a minute without damage")
	}
	for range 3 {
		n.RecordDamage(now)
	}
	if n.MayHelp() {
		t.Error("of help, with nothing but damage")
	}
}

func TestConnections(t *testing.T) {
	for _, c := range []struct {
		make, pace float64
		want       int
	}{{0, 1, 8}, {1, 0, 8}, {1, 1, 8}, {2.1, 1, 9}, {50, 1, 200}, {math.NaN(), 1, 8}, {math.Inf(1), 1, 1 << 20}} {
		if got := ConnectionCount(c.make, c.pace); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// 256 trainers on 1,000 nodes spread evenly; a node that goes moves only those that had it, and each of them to one
// other.
func TestSubset(t *testing.T) {
	var nodes []string
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("10.0.%d.%d:7070", i/250, i%250))
	}
	const trainers, each = 256, 40
	gone := nodes[500]
	up := func(string) bool { return false }
	used := map[string]int{}
	moved, had := 0, 0
	for k := range trainers {
		trainer := fmt.Sprint("job ", k)
		score := func(node string) uint64 { return NodeScore(trainer, node) }
		before := ChooseSubset(nodes, each, score, up)
		if len(before) != each {
			t.Fatalf("%d nodes", len(before))
		}
		in := map[string]bool{}
		for _, n := range before {
			used[n]++
			in[n] = true
		}
		if in[gone] {
			had++
		}
		after := ChooseSubset(nodes, each, score, func(n string) bool { return n == gone })
		for _, n := range after {
			if !in[n] {
				moved++
			}
		}
		if want := each; len(after) != want && !in[gone] || in[gone] && len(after) != each+1 {
			t.Errorf("%d nodes when one is down", len(after))
		}
	}
	if moved != had {
		t.Errorf("%d of %d trainers changed", moved, had)
	}
	for _, n := range nodes {
		if k := used[n]; k > 30 { // mean 10
			t.Errorf("%s has %d trainers", n, k)
		}
	}
	if len(used) < 990 {
		t.Errorf("%d nodes are used", len(used))
	}
	if all := ChooseSubset(nodes[:3], 8, func(string) uint64 { return 0 }, func(string) bool { return true }); len(all) != 3 {
		t.Errorf("%d of 3 when all are down", len(all))
	}
}

// Ties are broken evenly, by want.
func TestTie(t *testing.T) {
	a, b := NodeScore("job", "a"), NodeScore("job", "b")
	first := 0
	for want := range uint64(1000) {
		if BreakTie(a, want) > BreakTie(b, want) {
			first++
		}
	}
	if first < 420 || first > 580 {
		t.Errorf("%d of 1000", first)
	}
}

func TestUsual(t *testing.T) {
	near(t, "of none", KnownMedian([]float64{0, math.NaN()}), 0)
	near(t, "of some", KnownMedian([]float64{0, 3, 1, 2}), 2)
}
