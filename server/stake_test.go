package server

import (
	"fmt"
	"testing"
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
			if got := a.step(&Want{Step: 7}); got != want {
				t.Errorf("%q, run %d: step %d, want %d", identity, i, got, want)
			}
		}
	}
}
