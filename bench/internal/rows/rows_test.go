package rows

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type row struct {
	held   bool
	stolen float64
}

func (r *row) Held() bool          { return r.held }
func (r *row) Print(io.Writer)     {}
func (r *row) Stole(share float64) { r.stolen = share }

var table = Table[*row]{
	Head:     func(io.Writer) {},
	Document: func(w io.Writer, all []*row) { _, _ = w.Write(make([]byte, len(all))) },
}

func job(name string, held bool) Job[*row] {
	return Job[*row]{name, func(context.Context) *row { return &row{held: held} }}
}

// Rows that were not asked for are not measured, and one that misses fails the table, which is written all the same.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table")
	for only, want := range map[string]struct {
		rows int64
		err  error
	}{"": {3, ErrMissed}, "good": {2, nil}} {
		o := Output{only: only, markdown: file}
		err := table.Run(t.Context(), &o, []Job[*row]{job("good", true), job("bad", false), job("as good", true)})
		if !errors.Is(err, want.err) {
			t.Errorf("%q: %v", only, err)
		}
		if s, err := os.Stat(file); err != nil || s.Size() != want.rows {
			t.Errorf("%q: %v, %v", only, s, err)
		}
	}
	jobs := []Job[*row]{job("good", true), job("bad", false)}
	for only, says := range map[string]string{"(": "missing closing )", "none": "--only none matches none of: good; bad"} {
		if err := table.Run(t.Context(), &Output{only: only}, jobs); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", only, err)
		}
	}
}

// The share is that of all cores' time between two looks.
func TestParse(t *testing.T) {
	all, stolen := parse("cpu  10 20 30 400 5 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if all != 558 || stolen != 80 {
		t.Errorf("%v, %v", all, stolen)
	}
	if all, stolen := parse("cpu 1 2"); all != 0 || stolen != 0 {
		t.Errorf("%v, %v of a line that is too short", all, stolen)
	}
	if share := watch()(); share < 0 || share > 1 {
		t.Errorf("a share of %v", share)
	}
}
