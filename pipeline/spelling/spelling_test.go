package spelling

import (
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"abc", ""}: 3, {"", "abc"}: 3, {"kitten", "sitting"}: 3, {"flaw", "lawn"}: 2, {strings.Repeat("a", 100), strings.Repeat("a", 64)}: 36,
	} {
		if got := Edits(pair[0], pair[1]); got != want {
			t.Errorf("%q: %d, want %d", pair, got, want)
		}
	}
}
