package share

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// A tenant has the share of its weight, however many accounts it spreads its wants over, and whether it keeps them or
// takes a new one for each.
func TestTenants(t *testing.T) {
	for name, wants := range map[string]func(*Tenant) func() *Account{
		"many accounts": func(p *Tenant) func() *Account {
			all, k := make([]*Account, 50), 0
			for i := range all {
				all[i] = p.Account()
			}
			return func() *Account {
				k++
				return all[k%len(all)]
			}
		},
		"new accounts": func(p *Tenant) func() *Account { return p.Account },
	} {
		var q Queue[string]
		many, one := NewTenant(1), NewAccount(1)
		next := wants(many)
		push := map[string]func(){
			"many": func() { q.Push("many", next(), 0, 0, 1) },
			"one":  func() { q.Push("one", one, 0, 0, 1) },
		}
		for range 100 {
			push["many"]()
			push["one"]()
		}
		served := map[string]int{}
		for range 2000 {
			turn, _ := q.Take(1)
			served[turn.Entry.Value]++
			q.RecordCost(turn.Entry, 0.1, 0.1)
			push[turn.Entry.Value]()
		}
		if n := served["many"]; n < 980 || n > 1020 {
			t.Errorf("%s: the tenant was served %d of 2000 samples", name, n)
		}
	}
}

// Accounts of a tenant have equal shares of its own.
func TestAccountsOfAParty(t *testing.T) {
	var q Queue[int]
	p := NewTenant(0.1)
	all := []*Account{p.Account(), p.Account(), p.Account()}
	for i, a := range all {
		q.Push(i, a, 0, 0, 1000*(i+1))
	}
	served := [3]int{}
	for range 900 {
		turn, _ := q.Take(1)
		served[turn.Entry.Value]++
	}
	if served != [3]int{300, 300, 300} {
		t.Errorf("served %v of 900", served)
	}
}

// Whatever is pushed, hastened, dropped and taken, each sample is handed out once, and what is queued is known.
func TestQueueAdds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	p := NewTenant(1)
	accounts := []*Account{p.Account(), p.Account(), NewAccount(2)}
	var entries []*Entry[int]
	left := map[*Entry[int]]int{}
	queued := 0
	take := func() {
		turn, ok := q.Take(float64(r.IntN(10)))
		if !ok {
			return
		}
		if turn.First != turn.Entry.count-left[turn.Entry] || turn.Count > left[turn.Entry] {
			t.Fatalf("samples %d to %d of an entry of which %d are left", turn.First, turn.First+turn.Count, left[turn.Entry])
		}
		left[turn.Entry] -= turn.Count
		queued -= turn.Count
	}
	for i := range 5000 {
		a := accounts[r.IntN(len(accounts))]
		switch r.IntN(5) {
		case 0:
			e := q.Push(i, a, uint64(r.IntN(4)), float64(r.IntN(10)), 1+r.IntN(5))
			entries = append(entries, e)
			left[e] = e.count
			queued += e.count
		case 1:
			if len(entries) > 0 {
				q.MoveUp(entries[r.IntN(len(entries))], a, uint64(r.IntN(4)), float64(r.IntN(10)))
			}
		case 2:
			if len(entries) > 0 {
				q.Drop(entries[r.IntN(len(entries))])
			}
		default:
			take()
		}
		lines := queued
		for _, e := range q.dropped {
			lines -= e.count - e.next
		}
		for _, l := range q.heaps {
			lines -= l.samples
			if soonest := slices.MinFunc(l.entries, func(a, b *Entry[int]) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq)) }); soonest != l.soonest {
				t.Fatalf("an entry due at %v is soonest, not one due at %v", soonest.due, l.soonest.due)
			}
		}
		if q.Samples() != queued || lines != 0 {
			t.Fatalf("%d samples are queued, of %d, and %d in no line", q.Samples(), queued, lines)
		}
	}
	for q.Samples() > 0 {
		take()
	}
	if queued != 0 || len(q.heaps) != 0 || p.activeAccounts != 0 || p.urgent != 0 {
		t.Errorf("%d samples, %d heaps, of the tenant %d, %d urgent", queued, len(q.heaps), p.activeAccounts, p.urgent)
	}
}
