//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/feedwater-io/feedwater/bench/internal/rows"
)

// result is a row of the table.
type result struct {
	Attack string `json:"attack"`
	Unit   string `json:"unit"`
	// Answers of the node and how many there were; hung up: the connection ended without one.
	Answers map[string]int `json:"answers"`
	// PerSecond is how many units the attacker managed in a second.
	PerSecond float64 `json:"per_second"`
	// Rate is the job's under attack over that in the control, Work its samples for each core-second of the node's; medians and ranges of
	// all rounds.
	Rate spread `json:"rate"`
	Work spread `json:"work"`
	// Cores that the attack took of the node's: what it used beyond what the job's samples cost in the control. Cost is that of a unit, in
	// core-seconds.
	Cores float64 `json:"cores"`
	Cost  float64 `json:"cost_core_seconds"`
	// AttackedBytes and ControlBytes are the memory that the node had at most.
	AttackedBytes int     `json:"attacked_bytes"`
	ControlBytes  int     `json:"control_bytes"`
	Rounds        []round `json:"rounds"`
	// Stolen is the share of the machine's cores that its host gave to others meanwhile.
	Stolen float64 `json:"stolen"`
	OK     bool    `json:"ok"`
	Err    string  `json:"error,omitempty"`
}

type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// spreadOf needs a value.
func spreadOf(v []float64) spread {
	v = slices.Sorted(slices.Values(v))
	return spread{(v[len(v)/2] + v[(len(v)-1)/2]) / 2, v[0], v[len(v)-1]}
}

const leastShare = 0.9 // of its rate that the job keeps

// judge sums the rounds up.
func (out *result) judge(a *attack) {
	out.Answers = map[string]int{}
	var rates, works []float64
	var units, seconds, extra, watched float64
	for _, r := range out.Rounds {
		rates = append(rates, r.Attacked.rate()/r.Control.rate())
		works = append(works, r.Attacked.work()/r.Control.work())
		units += float64(r.Attacked.Attacker.Units)
		seconds += r.Attacked.Attacker.Seconds
		watched += r.Attacked.Seconds
		extra += r.Attacked.CoreSeconds - float64(r.Attacked.Samples)/r.Control.work()
		out.AttackedBytes, out.ControlBytes = max(out.AttackedBytes, r.Attacked.Bytes), max(out.ControlBytes, r.Control.Bytes)
		for answer, n := range r.Attacked.Attacker.Answers {
			out.Answers[answer] += n
		}
	}
	out.Rate, out.Work = spreadOf(rates), spreadOf(works)
	out.PerSecond = units / seconds
	out.Cores = max(0, extra/watched)
	if units > 0 {
		out.Cost = out.Cores / out.PerSecond
	}
	out.OK = out.Rate.Median >= leastShare && units > 0 && (!a.ends() || out.Answers[hungUp] > 0)
	for answer := range out.Answers {
		out.OK = out.OK && a.right(answer)
	}
}

// said are the answers, the commonest first.
func (out *result) said() string {
	all := slices.SortedFunc(maps.Keys(out.Answers), func(a, b string) int { return out.Answers[b] - out.Answers[a] })
	return strings.Join(all, ", ")
}

// Held implements rows.Row.
func (out *result) Held() bool { return out.OK }

// Stole implements rows.Row.
func (out *result) Stole(share float64) { out.Stolen = share }

const (
	head  = "%-38s %-10s %10s %22s %22s %8s %10s %13s %-7s %s\n"
	cells = "%-38s %-10s %8.0f/s %5.2f (%4.2f to %5.2f)   %5.2f (%4.2f to %5.2f)   %8.3f %7.1f us %5d/%5d M %-7s %s\n"
)

func printHead(w io.Writer) {
	fmt.Fprintf(w, head, "attack", "unit", "units", "job's rate", "per core-second", "cores", "cost", "memory", "ok", "answers")
}

// Print implements rows.Row.
func (out *result) Print(w io.Writer) {
	if out.Err != "" {
		fmt.Fprintf(w, "%-38s %s\n", out.Attack, out.Err)
		return
	}
	fmt.Fprintf(w, cells, out.Attack, out.Unit, out.PerSecond, out.Rate.Median, out.Rate.Least, out.Rate.Most, out.Work.Median, out.Work.Least, out.Work.Most,
		out.Cores, out.Cost*1e6, out.AttackedBytes>>20, out.ControlBytes>>20, rows.Word(out.OK), out.said())
}

// markdown writes the table for a document.
func markdown(w io.Writer, results []*result) {
	fmt.Fprintln(w, "| attack | the node answers | units a second | job's rate, of the control | samples per core-second, of the control | node's cores that the attack took | … for a unit | memory, control's |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, r := range results {
		if r.Err != "" {
			fmt.Fprintf(w, "| %s | %s | | | | | | |\n", r.Attack, r.Err)
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %.0f %ss | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.3f | %.1f µs | %d MiB, %d |\n", r.Attack, r.said(), r.PerSecond, r.Unit,
			r.Rate.Median, r.Rate.Least, r.Rate.Most, r.Work.Median, r.Work.Least, r.Work.Most, r.Cores, r.Cost*1e6, r.AttackedBytes>>20, r.ControlBytes>>20)
	}
}
