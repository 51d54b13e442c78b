//go:build linux

// Command faults runs a training job on real nodes, which decode real photographs, through one fault after the other, and holds what
// the job got against what it gets undisturbed: no sample lost, repeated or changed, how much work was done twice, and for how
// long the loop stood still. Nodes are processes of `feedwater serve`, each at the same fixed speed, far below what the machine
// could do; ranks are Python processes with a Loader each; faults of links are those of a proxy in front of each node. Demand is the
// capacity measured with the fault standing, divided by 1.15. Everything it starts ends with it.
//
//	go run ./bench/faults DATA                          prints a table; about 40 s for each row
//	go run ./bench/faults --only black --json DATA      some rows, for programs
//	go run ./bench/faults --soak 20 DATA                twenty minutes of faults at random
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/feedwater-io/feedwater/bench/internal/rows"
)

type options struct {
	matrix
	output  rows.Output
	verbose bool
	seed    uint64
	minutes float64
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == confined {
		exit(runConfined(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == watched {
		exit(runWatched(os.Args[2:]))
	}
	o := options{matrix: matrix{batch: 8}}
	flag.StringVar(&o.program, "program", os.Getenv("FEEDWATER_BINARY"), "the feedwater `program` that trainers use")
	flag.StringVar(&o.testNode, "test-node", os.Getenv("TEST_NODE_BINARY"), "the `program` that nodes run, of make build-testnode")
	flag.StringVar(&o.python, "python", cmp.Or(os.Getenv("FEEDWATER_PYTHON"), "python3"), "`interpreter` with feedwater")
	flag.Float64Var(&o.speed, "speed", 160, "samples a second that the whole fleet makes")
	flag.Float64Var(&o.seconds, "seconds", 20, "for which each job is watched, after it has warmed up")
	flag.Float64Var(&o.minutes, "soak", 0, "instead of the table, so many `minutes` of one job with faults at random; memory and handles must stay")
	o.output.Define(flag.CommandLine, "faults")
	flag.BoolVar(&o.verbose, "verbose", false, "say what nodes and trainers say")
	flag.Uint64Var(&o.seed, "seed", 1, "of the times at which faults happen")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, flag.Args())
	cancel()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o *options) run(ctx context.Context, args []string) error {
	if len(args) != 1 || o.program == "" || o.testNode == "" {
		return errors.New("usage: faults [flags] FOLDER; FEEDWATER_BINARY or --program names the program, TEST_NODE_BINARY or --test-node that of nodes")
	}
	o.say = func(string) {}
	if o.verbose {
		o.say = func(s string) { fmt.Fprintln(os.Stderr, strings.TrimSuffix(s, "\n")) }
	}
	o.random = rand.New(rand.NewPCG(o.seed, 0))
	var err error
	if o.data, err = filepath.Abs(args[0]); err != nil {
		return err
	}
	if o.program, err = filepath.Abs(o.program); err != nil {
		return err
	}
	if o.testNode, err = filepath.Abs(o.testNode); err != nil {
		return err
	}
	if o.scratch, err = os.MkdirTemp("", "faults"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.scratch) }()
	enough := o.speed * (o.seconds + 2*warmUp.Seconds() + 5)
	if o.minutes > 0 {
		enough = o.speed * soakLoad * (o.minutes*60 + 30 + 3*calm.Seconds())
	}
	if err := o.learn(ctx, enough); err != nil {
		return fmt.Errorf("the undisturbed run: %w", err)
	}
	if o.minutes > 0 {
		return o.soak(ctx, o.minutes, os.Stdout)
	}
	return o.table(ctx)
}

// table measures all rows that were asked for.
func (o *options) table(ctx context.Context) error {
	t := rows.Table[*result]{Head: printHead, Document: markdown}
	var jobs []rows.Job[*result]
	for _, f := range faults() {
		jobs = append(jobs, rows.Job[*result]{Name: f.name, Measure: func(ctx context.Context) *result {
			r, err := o.row(ctx, &f)
			if err != nil {
				r.Err = err.Error()
			}
			return &r
		}})
	}
	return t.Run(ctx, &o.output, jobs)
}
