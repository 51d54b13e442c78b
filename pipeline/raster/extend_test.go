package raster

import "testing"

func TestContinuations(t *testing.T) {
	for mode, want := range map[string][2]string{
		"edge":      {"aaaaaabccccccc", "aaaaaaa"},
		"reflect":   {"babcbabcbabcba", "aaaaaaa"},
		"symmetric": {"bccbaabccbaabc", "aaaaaaa"},
	} {
		got, single := "", ""
		for i := -5; i < 9; i++ {
			got += string("abc"[continuations[mode].sourceIndex(i, 3)])
		}
		for i := -3; i < 4; i++ {
			single += string("a"[continuations[mode].sourceIndex(i, 1)])
		}
		if got != want[0] || single != want[1] {
			t.Errorf("%s: %s and %s, want %s", mode, got, single, want)
		}
	}
}
