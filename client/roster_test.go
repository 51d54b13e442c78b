package client

import (
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// TestAdviceOnChange: of data whose list lies beside it a new Loader has the same error until that list is made anew, and so none is advised.
func TestAdviceOnChange(t *testing.T) {
	for shipped, want := range map[bool]bool{false: true, true: false} {
		told := (&dataset.ChangedError{Path: "a/1.jpg", Shipped: shipped}).Error()
		if says := (&roster{}).adviceOnChange(told); strings.Contains(says, "a new Loader") != want {
			t.Errorf("of %q: %q", told, says)
		}
	}
}
