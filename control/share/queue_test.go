package share

import (
	"math"
	"slices"
	"testing"
)

// trainer is a job of one rank that keeps a window of batches wanted or ready.
type trainer struct {
	weight, step, load float64 // seconds per step; share of the node that it would take
	batch, window      int
	start              float64
	lies               bool // says that everything is due at once

	account *Account
	cost    float64   // core-seconds per sample
	ready   []float64 // per batch, when it was made; 0: it is not yet
	next    int       // batch that the loop takes next
	wanted  int       // batches asked for
	at      float64   // when the loop takes it, if it is there
	entered float64
	stall   float64
	worst   float64
	served  float64 // core-seconds
}

// play runs trainers on one node of 32 cores, sample by sample, for so many seconds. Shares and stalls count after a
// tenth of it.
func play(seconds float64, trainers ...*trainer) {
	const cores = 32.0
	var q Queue[want]
	for _, tr := range trainers {
		tr.account = NewAccount(tr.weight)
		tr.cost = tr.load * cores * tr.step / float64(tr.batch)
		tr.at, tr.entered = tr.start, tr.start
		tr.ready = make([]float64, 1<<12)
	}
	for now := 0.0; now < seconds; {
		later := math.Inf(1)
		for _, tr := range trainers {
			later = min(later, tr.advance(&q, now, seconds/10))
		}
		turn, ok := q.Take(now)
		if !ok {
			now = later
			continue
		}
		w := turn.Entry.Value
		if turn.First == 0 {
			*w.begun = now
		}
		now += w.cost / cores
		if now > seconds/10 {
			w.served += w.cost
		}
		if turn.First == w.batch-1 {
			w.ready[w.number] = now
			q.RecordCost(turn.Entry, now-*w.begun, w.cost*float64(w.batch))
		}
	}
}

type want struct {
	*trainer
	number int
	begun  *float64
}

// advance has the loop take what is there by now, and wants up to the window. It returns when the loop would take the
// next one.
func (tr *trainer) advance(q *Queue[want], now, warm float64) float64 {
	if now < tr.start {
		return tr.start
	}
	for tr.at <= now && tr.next < tr.wanted && tr.ready[tr.next] > 0 {
		wait := max(tr.ready[tr.next]-tr.at, 0)
		if now > warm {
			tr.stall += wait
			tr.worst = max(tr.worst, wait)
		}
		tr.next++
		tr.at += wait + tr.step
	}
	for ; tr.wanted < tr.next+tr.window; tr.wanted++ {
		due := now + float64(tr.wanted-tr.next)*tr.step
		if tr.lies {
			due = now
		}
		q.Push(want{tr, tr.wanted, new(float64)}, tr.account, 0, due, tr.batch)
	}
	if tr.ready[tr.next] > 0 {
		return tr.at
	}
	return math.Inf(1)
}

func job(load, step float64, batch int) *trainer {
	return &trainer{weight: 1, load: load, step: step, batch: batch, window: 16}
}

// Script 8: three jobs that take a fifth of a node each stay fed beside one that says that all it wants is due at once,
// and wants 0.9 of it.
func TestLiar(t *testing.T) {
	const seconds = 120.0
	liar := job(0.9, 0.2, 64)
	liar.lies = true
	honest := []*trainer{job(0.2, 0.1, 16), job(0.2, 0.2, 16), job(0.2, 0.5, 64)}
	play(seconds, append(honest, liar)...)
	for _, tr := range honest {
		if share := tr.stall / (0.9 * seconds); share > 0.005 {
			t.Errorf("a job of steps of %v s stalls %.2f %%", tr.step, 100*share)
		}
	}
	if share := liar.served / (0.9 * seconds * 32); math.Abs(share-0.4) > 0.02 {
		t.Errorf("the liar has %.1f %%, want 40", 100*share)
	}
}

// Script 9: weights hold under overload, and a newcomer makes nobody wait for long.
func TestWeights(t *testing.T) {
	a, b := job(0.75, 0.1, 32), job(0.75, 0.1, 32)
	a.weight = 3
	play(60, a, b)
	if ratio := a.served / b.served; math.Abs(ratio/3-1) > 0.01 {
		t.Errorf("weights 3:1 gave %.3f:1", ratio)
	}
}

func TestNewcomer(t *testing.T) {
	newcomer := job(0.6, 0.1, 32)
	newcomer.start = 40
	running := []*trainer{job(0.25, 0.1, 16), job(0.25, 0.2, 16), job(0.25, 0.5, 64)}
	play(100, append(running, newcomer)...)
	for _, tr := range running {
		if tr.worst > 0.7 {
			t.Errorf("a job of steps of %v s waited %.2f s", tr.step, tr.worst)
		}
	}
}

// A newcomer to an overloaded node brings no credit from the time in which it was not there.
func TestNewcomerToOverload(t *testing.T) {
	newcomer := job(2, 0.1, 64)
	newcomer.start = 40
	running := []*trainer{job(0.7, 0.1, 32), job(0.7, 0.1, 32)}
	play(100, append(running, newcomer)...)
	for _, tr := range running {
		if tr.worst > 0.7 {
			t.Errorf("a job waited %.2f s", tr.worst)
		}
	}
}

// A job that is well ahead leaves the node to one that is not, whatever its window.
func TestFedAsksForNothing(t *testing.T) {
	fed, other := job(0.3, 0.1, 16), job(0.6, 0.1, 32)
	fed.window, fed.start, other.window = 400, 20, 4
	play(100, fed, other)
	if fed.stall > 0.1 || other.stall > 0 { // the first batch it has to wait for
		t.Errorf("stalls of %.2f and %.2f s", fed.stall, other.stall)
	}
}

// A job of large batches beside one of small steps: whoever becomes urgent waits for a sample, not for a batch.
func TestLargeBatches(t *testing.T) {
	large, small := job(0.5, 2, 512), job(0.35, 0.1, 8)
	large.window = 4
	play(100, large, small)
	for _, tr := range []*trainer{large, small} {
		if tr.stall > 0 {
			t.Errorf("a job of steps of %v s stalls %.2f s", tr.step, tr.stall)
		}
	}
}

// Two trainers on a node that cannot feed both: the fed one asks for less and the starving one has the rest, up to its
// share.
func TestStarvingGetsTheRest(t *testing.T) {
	fed, starving := job(0.3, 0.2, 16), job(1.2, 0.1, 32)
	play(60, fed, starving)
	if fed.stall > 0 || math.Abs(starving.served/(54*32)-0.7) > 0.02 {
		t.Errorf("the fed one stalls %.2f s, the other has %.2f of the node", fed.stall, starving.served/(54*32))
	}
}

func TestOrderWithinAnAccount(t *testing.T) {
	var q Queue[string]
	a := NewAccount(1)
	q.Push("late", a, 0, 9, 2)
	q.Push("first", a, 0, 3, 1)
	q.Push("second", a, 0, 3, 1)
	got := ""
	for {
		turn, ok := q.Take(0)
		if !ok {
			break
		}
		got += turn.Entry.Value + " "
	}
	if got != "first second late late " || q.Samples() != 0 || len(q.heaps) != 0 {
		t.Errorf("%q, %d samples, %d lines are left", got, q.Samples(), len(q.heaps))
	}
}

// An account's earlier steps come first, whatever their dues; those of another account have nothing to do with them.
func TestStepsWithinAnAccount(t *testing.T) {
	var q Queue[string]
	a, b := NewAccount(1), NewAccount(1)
	q.Push("ahead", a, 9, 1, 1)
	q.Push("behind", a, 7, 5, 1)
	q.Push("other", b, 8, 0, 1)
	e := q.Push("shared", b, 9, 9, 1)
	q.MoveUp(e, a, 6, 4)
	got := ""
	for {
		turn, ok := q.Take(-100)
		if !ok {
			break
		}
		got += turn.Entry.Value + " "
	}
	if want := "other shared behind ahead "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An account is as urgent as its earliest due, though it is served by steps: one rank of it starves while another,
// which is behind, has enough.
func TestUrgentBehindALaterDue(t *testing.T) {
	var q Queue[string]
	a, b := NewAccount(1), NewAccount(1)
	for _, account := range []*Account{a, b} {
		q.ledger.recordCost(account, 1, 1, 1)
	}
	q.Push("sated", a, 1, 100, 1)
	q.Push("starving", a, 2, 0, 1)
	for range 4 {
		q.Push("other", b, 0, 0, 1)
	}
	got := ""
	for range 4 {
		turn, _ := q.Take(0)
		got += turn.Entry.Value + " "
	}
	if want := "sated other starving other "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDrop(t *testing.T) {
	var q Queue[int]
	a := NewAccount(1)
	first, second := q.Push(1, a, 0, 0, 4), q.Push(2, a, 0, 1, 5)
	q.Take(0)
	q.Drop(second)
	q.Drop(second)
	q.Drop(first)
	for _, want := range []Portion[int]{{Entry: second, First: 0, Count: 5}, {Entry: first, First: 1, Count: 3}} {
		if turn, ok := q.Take(0); !ok || turn != want {
			t.Errorf("%+v, want %+v", turn, want)
		}
	}
	q.Drop(first)
	if _, ok := q.Take(0); ok || q.Samples() != 0 {
		t.Errorf("something is left: %d samples", q.Samples())
	}
}

func TestClear(t *testing.T) {
	var q Queue[int]
	q.Push(1, NewAccount(1), 0, 0, 4)
	q.Drop(q.Push(2, NewAccount(1), 0, 0, 4))
	q.Take(0)
	if rest := q.Clear(); len(rest) != 1 || rest[0].Value != 1 {
		t.Errorf("%d entries", len(rest))
	}
}

// What makes no sense costs whoever says it its place, and nobody else anything.
func TestLies(t *testing.T) {
	lies := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e300}
	for _, x := range lies {
		for _, y := range lies {
			var q Queue[int]
			bad, good := NewAccount(x), NewAccount(1)
			q.ledger.recordCost(bad, y, x, -3)
			q.Push(0, bad, 0, y, 100)
			q.Push(1, good, 0, 0, 100)
			served := 0
			for range 200 {
				turn, ok := q.Take(0)
				if !ok {
					t.Fatalf("%v %v: nothing to do, %d samples left", x, y, q.Samples())
				}
				q.RecordCost(turn.Entry, y, x)
				served += turn.Entry.Value
			}
			if served != 100 {
				t.Errorf("%v %v: %d of 100 samples", x, y, served)
			}
			if v := bad.v + bad.tenant.v; math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v %v: virtual time %v", x, y, v)
			}
		}
	}
}

func TestHand(t *testing.T) {
	h := BusyMeter{Workers: 4}
	h.Add(2, 10) // nothing until here
	h.Add(10, 11)
	h.Add(-12, 13)
	if s := h.Seconds(20); s != 0.5+2 {
		t.Errorf("%v s with work at hand, want 2.5", s)
	}
}

// What is ahead of a newcomer's want is all that is queued, or its own at its share.
func TestAhead(t *testing.T) {
	var q Queue[int]
	a, b, c := NewAccount(1), NewAccount(3), NewAccount(1)
	made := func(a *Account) {
		q.Push(0, a, 0, 0, 1)
		turn, _ := q.Take(0)
		q.RecordCost(turn.Entry, 1, 0.5)
	}
	made(a)
	made(b)
	q.Push(1, a, 0, 0, 10) // 5 core-seconds
	q.Push(2, b, 0, 0, 90) // 45
	q.Push(3, b, 0, 0, 30) // 15
	for account, want := range map[*Account]float64{a: 5 * 4, b: 65, c: 0} {
		if got := q.Ahead(account); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g core-seconds ahead, want %g", got, want)
		}
	}
}

// What another account needs earlier is made on its account, from where it is; nothing else changes.
func TestHasten(t *testing.T) {
	var q Queue[string]
	a, b := NewAccount(1), NewAccount(1)
	q.Push("a first", a, 0, 100, 1)
	e := q.Push("a last", a, 0, 200, 3)
	q.Push("b", b, 0, 150, 1)
	q.MoveUp(e, b, 0, 300)
	q.MoveUp(e, b, 0, 50)
	q.MoveUp(e, a, 0, 60)
	if e.account != b || e.due != 50 || q.Samples() != 5 {
		t.Errorf("due %v, %d samples", e.due, q.Samples())
	}
	var got []string
	for {
		turn, ok := q.Take(0)
		if !ok {
			break
		}
		q.MoveUp(turn.Entry, b, 0, 40-float64(turn.First)) // handed out whole in the end
		got = append(got, turn.Entry.Value)
	}
	if want := []string{"a last", "a last", "a last", "a first", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	dropped := q.Push("dropped", a, 0, 9, 2)
	q.Drop(dropped)
	q.MoveUp(dropped, b, 0, 1)
	if turn, ok := q.Take(0); !ok || turn.Count != 2 || q.Samples() != 0 || len(q.heaps) != 0 {
		t.Errorf("%+v, %d samples, %d lines", turn, q.Samples(), len(q.heaps))
	}
}

// Of what a batch took counts what it would have taken alone: two accounts that are urgent at once are handed samples
// in turn.
func TestMakesAreAlone(t *testing.T) {
	var q Queue[int]
	a, b := NewAccount(1), NewAccount(1)
	q.ledger.recordCost(a, 1, 1, 1)
	q.ledger.recordCost(b, 1, 1, 1)
	first := q.Push(0, a, 0, 0, 8)
	q.Push(0, b, 0, 0, 8)
	now := 1.0
	for first.Begun() < 8 {
		q.Take(now)
		now++
	}
	q.RecordCost(first, now-1, 8)
	if alone := a.makes.Value(); alone < 7.9 || alone > 8.1 || now < 15 {
		t.Errorf("a batch of 8 s, made in %.0f, counts %.1f s", now-1, alone)
	}
}
