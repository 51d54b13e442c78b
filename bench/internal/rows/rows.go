// Package rows measures the rows of a table one after the other: it prints each when it is there, writes the table for programs and documents,
// and says whether all held. A row that misses its limits while the machine's host gives much of its cores to others is measured again.
package rows

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// Output says which rows are asked for, and in which form.
type Output struct {
	only, markdown string
	json           bool
}

// Define defines its flags; what are the rows' subjects.
func (o *Output) Define(flags *flag.FlagSet, what string) {
	flags.StringVar(&o.only, "only", "", "only "+what+" whose names match this regular `expression`")
	flags.StringVar(&o.markdown, "markdown", "", "write the table to this `file`")
	flags.BoolVar(&o.json, "json", false, "print JSON")
}

// Row is what was measured.
type Row interface {
	// Held reports whether it is within its limits.
	Held() bool
	// Print writes it as a line.
	Print(w io.Writer)
	// Stole takes the share of the machine's cores that others had meanwhile.
	Stole(share float64)
}

// Table is what all rows share.
type Table[R Row] struct {
	// Head writes the line above them.
	Head func(io.Writer)
	// Document writes all as Markdown.
	Document func(io.Writer, []R)
}

// Job is a row to be measured. What goes wrong is in the row.
type Job[R Row] struct {
	Name    string
	Measure func(context.Context) R
}

// ErrMissed is when all was measured and some did not hold.
var ErrMissed = errors.New("some rows missed their limits")

const (
	tries      = 3    // of a row at most
	mostStolen = 0.05 // of the machine, with which a row that misses is measured again
)

// Run measures the rows that were asked for. Cancelling the context ends it with the context's error.
func (t *Table[R]) Run(ctx context.Context, o *Output, jobs []Job[R]) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	jobs, err = matching(jobs, only)
	if err != nil {
		return err
	}
	progress := io.Writer(os.Stdout)
	if o.json {
		progress = io.Discard
	}
	t.Head(progress)
	var all []R
	held := true
	for _, j := range jobs {
		row := measure(ctx, j, progress)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all = append(all, row)
		held = held && row.Held()
	}
	if err := t.write(o, all); err != nil {
		return err
	}
	if !held {
		return ErrMissed
	}
	return nil
}

// matching are the jobs whose names match. It is an error if none does: nothing would be measured, and all of that hold.
func matching[R Row](jobs []Job[R], only *regexp.Regexp) (some []Job[R], err error) {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
		if only.MatchString(j.Name) {
			some = append(some, j)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("--only %s matches none of: %s", only, strings.Join(names, "; "))
	}
	return some, nil
}

// measure measures a row, and prints it and every earlier try.
func measure[R Row](ctx context.Context, j Job[R], progress io.Writer) R {
	for n := 1; ; n++ {
		stolen := watch()
		row := j.Measure(ctx)
		share := stolen()
		row.Stole(share)
		if ctx.Err() != nil {
			return row
		}
		row.Print(progress)
		if n == tries || row.Held() || share < mostStolen {
			return row
		}
		fmt.Fprintf(progress, "  once more: others had %.0f %% of the machine\n", 100*share)
	}
}

func (t *Table[R]) write(o *Output, all []R) error {
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return err
		}
	}
	if o.markdown == "" {
		return nil
	}
	var text strings.Builder
	t.Document(&text, all)
	return os.WriteFile(o.markdown, []byte(text.String()), 0o644)
}

// Word is how a row ends.
func Word(held bool) string {
	if held {
		return "ok"
	}
	return "MISSED"
}
