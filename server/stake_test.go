package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedwater-io/feedwater/batch"
)

// An identity's runs beyond maxRuns share an account, in which the steps of one say nothing about those of another.
func TestStepsOfSharedAccounts(t *testing.T) {
	b := stakes{weight: func(string) float64 { return 1 }}
	for _, identity := range []string{"", "team"} {
		for i := range maxRuns + 2 {
			a := b.enter(runKey{identity, fmt.Sprint(i), "plan"})
			want := uint64(7)
			if identity != "" && i >= maxRuns {
				want = 0
			}
			if got := a.step(&Want{Request: batch.Request{Step: 7}}); got != want {
				t.Errorf("%q, run %d: step %d, want %d", identity, i, got, want)
			}
		}
	}
}

// Identities that come once, as certificates of short life bring them, are forgotten, unless they have runs or left just now.
func TestPartiesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := stakes{weight: func(string) float64 { return 1 }}
		b.enter(runKey{"stays", "run", "plan"})
		visit := func(identity string) { b.enter(runKey{identity, "run", "plan"}).leave() }
		for i := range 20 * manyParties {
			visit(fmt.Sprint("hourly ", i))
			time.Sleep(time.Hour)
		}
		if n := len(b.parties); n > manyParties {
			t.Errorf("%d parties, a visit an hour", n)
		}
		for i := range 20 * manyParties {
			visit(fmt.Sprint("at once ", i))
		}
		if n := len(b.parties); n > 2*mostIdle+manyParties {
			t.Errorf("%d parties, all visits at once", n)
		}
		if b.parties["stays"] == nil || b.parties["stays"].runs != 1 {
			t.Error("a party with a run was forgotten")
		}
		if len(b.all) != 1 {
			t.Errorf("%d stakes", len(b.all))
		}
		fresh := stakes{weight: b.weight}
		one := fresh.enter(runKey{"again", "run", "plan"})
		kept := fresh.parties["again"]
		one.leave()
		for i := range 2 * manyParties {
			fresh.enter(runKey{fmt.Sprint(i), "run", "plan"}).leave()
		}
		if fresh.parties["again"] != kept {
			t.Error("who left just now was forgotten: he could come again for a new share")
		}
	})
}
