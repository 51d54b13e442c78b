package dataset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/feedwater-io/feedwater/pipeline/dataset/treetest"
)

// Over several blocks, the last one not full, keys come as At tells them.
func TestAppendKeysTellsWhatAtTells(t *testing.T) {
	root := t.TempDir()
	for i := range 3*16 + 5 {
		treetest.Grow(t, root, fmt.Sprintf("class%d/deep%d/%d.jpg", i%3, i%2, i))
	}
	s := open(t, root, options(t))
	got, err := s.AppendKeys([]byte("before"))
	treetest.Must(t, err)
	if want := "before" + strings.Join(keys(t, s), "\x00") + "\x00"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	treetest.Must(t, s.Close())
	if _, err := s.AppendKeys(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed snapshot: %v", err)
	}
}

// TestTooManyKeys: a list of more samples than fit is refused before memory is taken.
func TestTooManyKeys(t *testing.T) {
	s := opened(t, remoteTree(t), options(t))
	if _, err := s.AppendKeys(nil); err != nil {
		t.Error(err)
	}
	s.samples = maxKeys + 1
	if _, err := s.AppendKeys(nil); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "10000001 samples") {
		t.Errorf("%v, want %v", err, ErrLayout)
	}
}
