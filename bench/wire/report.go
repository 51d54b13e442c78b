package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is a whole run.
type report struct {
	CPU         string       `json:"cpu"`
	Cores       int          `json:"cores"`
	Kernel      string       `json:"kernel"`
	Go          string       `json:"go"`
	GRPC        string       `json:"grpc"`
	Command     string       `json:"command"`
	BatchBytes  int          `json:"batch_bytes"`
	Contestants []contestant `json:"contestants"`
	Rounds      []round      `json:"rounds"`
	// Others is the cores that other processes used meanwhile.
	Others float64 `json:"others"`
}

func (r *report) print(w io.Writer) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, %d cores, Linux %s, %s, grpc-go %s; batches of %.1f MB; medians of %d rounds, ratios of the same round\n\n",
		r.CPU, r.Cores, r.Kernel, r.Go, r.GRPC, float64(r.BatchBytes)/1e6, len(r.Rounds)/len(r.Contestants))
	text.WriteString("\tGB/s\tof raw\tCPU-s/GB receiver\tof raw\tsender\t\n")
	for _, c := range r.Contestants {
		fmt.Fprintf(&text, "%s\t%.2f\t%.2f\t%.3f\t%.2f\t%.3f\t\n", c.Name, median(r.of(c.Name, speed)), r.ratio(c, speed),
			median(r.of(c.Name, receiving)), r.ratio(c, receiving), median(r.of(c.Name, sending)))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := text.WriteTo(t); err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nother processes used %.2f cores meanwhile\n", r.Others)
	return err
}

// What is asked of batches, against a raw socket of the same kind in the same round.
const (
	leastSpeed  = 0.6 // GB/s
	mostTrainer = 2   // CPU time of a training process with its agent
)

// figure is what bench/figure.py reads.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Unit  string  `json:"unit"`
	Least bool    `json:"least"`
}

// save adds the figures with limits to a file: all that goes over TCP.
func (r *report) save(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for _, one := range r.figures() {
		if err := e.Encode(one); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

func (r *report) figures() []figure {
	var all []figure
	for _, c := range r.Contestants {
		if c.Kind == "raw" || c.Network != "tcp" {
			continue
		}
		all = append(all, figure{"GB/s: " + c.Name + ", of raw TCP", r.ratio(c, speed), leastSpeed, "", true})
		if c.Kind == "trainer" {
			all = append(all, figure{"CPU to receive: " + c.Name + ", of raw TCP", r.ratio(c, receiving), mostTrainer, "", false})
		}
	}
	return all
}

// ratio compares a number of a contestant with that of the raw socket of its kind, round by round.
func (r *report) ratio(c contestant, number func(round) float64) float64 {
	i := slices.IndexFunc(r.Contestants, func(o contestant) bool {
		return o.Kind == "raw" && o.Network == c.Network && o.Congestion == c.Congestion
	})
	raw := r.of(r.Contestants[i].Name, number)
	ratios := r.of(c.Name, number)
	for i := range ratios {
		ratios[i] /= raw[i]
	}
	return median(ratios)
}

func speed(m round) float64 { return m.GBPerSecond }

func receiving(m round) float64 { return m.Receiver }

func sending(m round) float64 { return m.Sender }

// of is a number of a contestant's measurements, by round.
func (r *report) of(name string, number func(round) float64) []float64 {
	var values []float64
	for _, m := range r.Rounds {
		if m.Contestant == name {
			values = append(values, number(m))
		}
	}
	return values
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": ")
		}
	}
	return runtime.GOARCH
}

// moduleVersion is that of a module this program is built with.
func moduleVersion(path string) string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
