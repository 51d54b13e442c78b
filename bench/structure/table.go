package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// printTable writes one line for each number: what it was, is, and is meant to be.
func printTable(out io.Writer, t *tree) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "measure\t\t4a99f83\tnow\treach")
	for _, m := range measures {
		title := m.title
		for _, v := range m.values {
			now, _ := v.read(t)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", title, v.name, v.start, now, v.reach)
			title = ""
		}
	}
	return w.Flush()
}
