//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedwater-io/feedwater/bench/internal/rows"
)

// result is a row of the table.
type result struct {
	Fault string `json:"fault"`
	Nodes int    `json:"nodes"`
	Ranks int    `json:"ranks"`
	Note  string `json:"note,omitempty"`
	// Samples that were compared.
	Samples int `json:"samples"`
	difference
	// Capacity with the fault standing and Demand, in samples a second.
	Capacity float64 `json:"capacity"`
	Demand   float64 `json:"demand"`
	// Calm is the capacity without the fault, where that has to make no difference: a twentieth is allowed. Else 0.
	Calm float64 `json:"calm,omitempty"`
	// Extra is the work that the nodes did beyond what trainers got, as a share of that, and ExtraLimit what it may be: a twentieth, and
	// what trainers and agents had asked for when they were killed.
	Extra      float64 `json:"extra"`
	ExtraLimit float64 `json:"extra_limit"`
	// Stall is the share of the time for which the worst rank stood still, Limit what it may be, and Longest its longest wait in seconds.
	Stall   float64 `json:"stall"`
	Limit   float64 `json:"limit"`
	Longest float64 `json:"longest_wait_seconds"`
	// Stolen is the share of the machine's cores that its host gave to others meanwhile.
	Stolen float64 `json:"stolen"`
	OK     bool    `json:"ok"`
	Err    string  `json:"error,omitempty"`
}

const (
	maxExtra = 0.05
	maxStall = 0.005
	// maxSlower is how much of its rate a job may lose to a fault that is none of its own.
	maxSlower = 0.05
)

// verdict holds a row against its limits; gone is for how long nodes did not run.
func (out *result) verdict(f *fault, seconds float64, gone time.Duration) {
	still := f.still
	if f.gone {
		still += gone
	}
	out.Limit = max(maxStall, still.Seconds()/seconds)
	out.OK = out.difference == difference{} && out.Stall <= out.Limit && out.Extra <= out.ExtraLimit &&
		out.Capacity >= (1-maxSlower)*out.Calm
}

// Held implements rows.Row.
func (out *result) Held() bool { return out.OK }

// Stole implements rows.Row.
func (out *result) Stole(share float64) { out.Stolen = share }

const (
	head  = "%-42s %5s %5s %7s %7s %5s %8s %7s %7s %7s %8s %7s %8s  %s\n"
	cells = "%-42s %5d %5d %5.0f/s %7d %5d %8d %7d %6.1f%% %6.1f%% %7.2f%% %6.1f%% %7.2fs  %s\n"
)

func printHead(w io.Writer) {
	fmt.Fprintf(w, head, "fault", "nodes", "ranks", "demand", "samples", "lost", "repeated", "changed", "extra", "limit", "stall", "limit", "longest", "ok")
}

// Print implements rows.Row.
func (out *result) Print(w io.Writer) {
	if out.Err != "" {
		fmt.Fprintf(w, "%-42s %5d %5d  %s\n", out.Fault, out.Nodes, out.Ranks, lastLine(out.Err))
		return
	}
	fmt.Fprintf(w, cells, out.Fault, out.Nodes, out.Ranks, out.Demand, out.Samples, out.Lost, out.Repeated, out.Changed,
		100*out.Extra, 100*out.ExtraLimit, 100*out.Stall, 100*out.Limit, out.Longest, rows.Word(out.OK))
}

// lastLine is what a traceback comes to.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// markdown writes the table for a document, and below it how faults are staged that their names do not say.
func markdown(w io.Writer, results []*result) {
	fmt.Fprintln(w, "| fault | nodes, ranks | demand | samples | lost, repeated, changed "+
		"| extra work (limit) | stall (limit) | longest wait | |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|---|")
	for _, r := range results {
		if r.Err != "" {
			fmt.Fprintf(w, "| %s | %d, %d | | | | | | | %s |\n", r.Fault, r.Nodes, r.Ranks, lastLine(r.Err))
			continue
		}
		fmt.Fprintf(w, "| %s | %d, %d | %.0f/s | %d | %d, %d, %d | %.1f %% (%.1f) | %.2f %% (%.1f) | %.2f s | %s |\n",
			r.Fault, r.Nodes, r.Ranks, r.Demand, r.Samples, r.Lost, r.Repeated, r.Changed,
			100*r.Extra, 100*r.ExtraLimit, 100*r.Stall, 100*r.Limit, r.Longest, rows.Word(r.OK))
	}
	fmt.Fprintln(w)
	noted := map[string]bool{}
	for _, r := range results {
		if r.Note != "" && !noted[r.Fault] {
			noted[r.Fault] = true
			fmt.Fprintf(w, "- *%s*: %s\n", r.Fault, r.Note)
		}
	}
}
