package comparison

import (
	"strings"
	"testing"
)

// Batches are divided among the data as evenly as may be, and each has one.
func TestPlanParts(t *testing.T) {
	for _, c := range []struct {
		batches int
		want    []int
	}{{7, []int{3, 2, 2}}, {3, []int{1, 1, 1}}, {1, []int{1, 1, 1}}} {
		parts := PlanParts([]string{"photos", "photos/some", "more"}, c.batches)
		for i, p := range parts {
			if p.Batches != c.want[i] {
				t.Errorf("%d batches: part %d has %d, want %d", c.batches, i, p.Batches, c.want[i])
			}
		}
		if p := parts[1].Plan; !strings.Contains(p, `"source":{"path":"some","root":"photos"}`) {
			t.Errorf("part 1 is %s", p)
		}
	}
}
