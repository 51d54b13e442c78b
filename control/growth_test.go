package control_test

import (
	"fmt"
	"testing"

	"github.com/feedwater-io/feedwater/control"
)

// estimateOf is what nodes say together: that so many like one would do, and for how many seconds it works on a sample.
func estimateOf(words ...[2]float64) *control.NodeEstimate {
	e := &control.NodeEstimate{}
	for i, word := range words {
		e.Add(fmt.Sprint("node", i), int(word[0]), word[1], false)
	}
	return e
}

// A job that takes three nodes of 10 samples a second has one; then another one comes.
func TestNodesThatCome(t *testing.T) {
	const period = 15
	first := [2]float64{3, 0.1}
	for _, c := range []struct {
		name        string
		after       [][2]float64
		soon, later float64
	}{
		{"as fast", [][2]float64{first, first}, 3, 3},
		{"slow by itself: it makes the first no slower", [][2]float64{first, {15, 0.5}}, 3, 5},
		{"fast by itself", [][2]float64{first, {2, 0.05}}, 3, 3},
		{"both slower: they share what is used up", [][2]float64{{6, 0.2}, {6, 0.2}}, 3, 3},
		{"both slower, and one slow by itself", [][2]float64{{6, 0.2}, {18, 0.6}}, 3, 3},
		{"both slower, by less than half of what came", [][2]float64{{4, 0.13}, {4, 0.13}}, 4, 4},
	} {
		growth := control.Growth{}
		if n, _ := estimateOf(first).Bound(&growth, period); n != 3 {
			t.Fatalf("%v nodes at first", n)
		}
		for seconds := period; seconds <= 120; seconds += period {
			want := c.soon
			if seconds >= 60 {
				want = c.later
			}
			if n, _ := estimateOf(c.after...).Bound(&growth, period); n != want {
				t.Errorf("%s: %v nodes after %d s, want %v", c.name, n, seconds, want)
			}
		}
	}
}
