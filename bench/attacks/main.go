//go:build linux

// Command attacks measures what a well-behaved job keeps of its rate beside one attack after the other. The node is a process of
// `feedwater serve` with TLS, client certificates and tokens, which decodes real photographs with all cores; the job is a Loader in this process that
// takes batches as fast as they come. The attacker is another process, at another address of this machine (127.0.0.2), and goes on as fast as it can
// within a share of one core, which it takes from itself.
//
// Node and attacker share the machine's cores, so an attacker would cost the job something even if the node ignored it. So each stretch under
// attack has one behind it, in which the attacker's process spins instead, for as much CPU time as it took to attack. A job's
// share is its rate in the one over its rate in the other: what the node itself spends on the attack. Rates depend on whatever else runs on the
// machine, so there is a second measure, which does not: samples for each core-second that the node took, again the one over the other.
// Everything it starts ends with it.
//
//	go run ./bench/attacks DATA                           prints a table; 78 s for each row
//	go run ./bench/attacks --only handshake --json DATA   some rows, for programs, with every round
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/feedwater-io/feedwater/bench/internal/rows"
)

type options struct {
	output               rows.Output
	program, data, serve string
	rounds, batch        int
	share                float64
	warm, watch          time.Duration
	verbose              bool

	scratch string
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == attacking {
		exit(runAttacker(os.Args[2]))
	}
	var o options
	flag.StringVar(&o.program, "program", os.Getenv("FEEDWATER_BINARY"), "the feedwater `program`")
	flag.StringVar(&o.serve, "serve", "", "further `flags` of feedwater serve, with spaces between them")
	flag.IntVar(&o.rounds, "rounds", 7, "stretches under each attack, and as many without")
	flag.IntVar(&o.batch, "batch", 32, "samples in a batch of the job")
	flag.Float64Var(&o.share, "share", 0.5, "of one core that the attacker may take")
	flag.DurationVar(&o.warm, "warm", 5*time.Second, "for which the job runs before it is watched")
	flag.DurationVar(&o.watch, "watch", 3*time.Second, "length of a stretch")
	o.output.Define(flag.CommandLine, "attacks")
	flag.BoolVar(&o.verbose, "verbose", false, "say what the node says")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx, flag.Args())
	cancel()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o *options) run(ctx context.Context, args []string) error {
	if len(args) != 1 || o.program == "" {
		return errors.New("usage: attacks [flags] FOLDER, and FEEDWATER_BINARY or --program names the program")
	}
	var err error
	if o.data, err = filepath.Abs(args[0]); err != nil {
		return err
	}
	if o.scratch, err = os.MkdirTemp("", "attacks"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.scratch) }()
	t := rows.Table[*result]{Head: printHead, Document: markdown}
	var jobs []rows.Job[*result]
	for _, a := range attacks() {
		jobs = append(jobs, rows.Job[*result]{Name: a.name, Measure: func(ctx context.Context) *result {
			r, err := o.row(ctx, &a)
			if err != nil {
				r.Err = err.Error()
			}
			return &r
		}})
	}
	return t.Run(ctx, &o.output, jobs)
}
