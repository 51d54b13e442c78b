package runs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An identity's runs beyond maxRuns share an account, in which the steps of one say nothing about those of another.
func TestStepsOfSharedAccounts(t *testing.T) {
	b := Registry{Weight: func(string) float64 { return 1 }}
	for _, identity := range []string{"", "team"} {
		for i := range maxRuns + 2 {
			a := b.EnterRun(Key{identity, fmt.Sprint(i), "plan"})
			want := uint64(7)
			if identity != "" && i >= maxRuns {
				want = 0
			}
			if got := a.StepOf(7); got != want {
				t.Errorf("%q, run %d: step %d, want %d", identity, i, got, want)
			}
		}
	}
}

// Identities that come once, as certificates of short life bring them, are forgotten, unless they have runs or left
// just now.
func TestTenantsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Registry{Weight: func(string) float64 { return 1 }}
		b.EnterRun(Key{"stays", "run", "plan"})
		visit := func(identity string) { b.EnterRun(Key{identity, "run", "plan"}).Leave() }
		for i := range 20 * manyTenants {
			visit(fmt.Sprint("hourly ", i))
			time.Sleep(time.Hour)
		}
		if n := len(b.tenants); n > manyTenants {
			t.Errorf("%d tenants, a visit an hour", n)
		}
		for i := range 20 * manyTenants {
			visit(fmt.Sprint("at once ", i))
		}
		if n := len(b.tenants); n > 2*mostIdle+manyTenants {
			t.Errorf("%d tenants, all visits at once", n)
		}
		if b.tenants["stays"] == nil || b.tenants["stays"].runs != 1 {
			t.Error("a tenant with a run was forgotten")
		}
		if len(b.byKey) != 1 {
			t.Errorf("%d runs", len(b.byKey))
		}
		fresh := Registry{Weight: b.Weight}
		one := fresh.EnterRun(Key{"again", "run", "plan"})
		kept := fresh.tenants["again"]
		one.Leave()
		for i := range 2 * manyTenants {
			fresh.EnterRun(Key{fmt.Sprint(i), "run", "plan"}).Leave()
		}
		if fresh.tenants["again"] != kept {
			t.Error("who left just now was forgotten: he could come again for a new share")
		}
	})
}
