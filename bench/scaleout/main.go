// Command scaleout measures how much more a training job gets from more nodes. Nodes are processes of their own, on loopback TCP, with the real
// server and an engine that keeps a fixed pace and makes small pictures, so that one machine can hold many; the job's ranks are Loaders that step
// together and take batches as fast as they come. What it gets of n nodes, over n times what it gets of one in the same round, is the share of linear.
// Everything it starts ends with it.
//
//	go run ./bench/scaleout                           prints a table; ten minutes
//	go run ./bench/scaleout --svg docs/scaleout.svg   and draws it
//	go run ./bench/scaleout --json                    the same for programs, with every round
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	rounds, ranks, batch int
	rate                 float64
	warm, watch          time.Duration
	svg                  string
	json, node           bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; each has every number of nodes once, in another order")
	flag.IntVar(&o.ranks, "ranks", 4, "ranks of the job")
	flag.IntVar(&o.batch, "batch", 8, "samples in a rank's batch")
	flag.Float64Var(&o.rate, "rate", 200, "samples a second that a node makes")
	flag.DurationVar(&o.warm, "warm", 8*time.Second, "from the first batch until the job is watched")
	flag.DurationVar(&o.watch, "watch", 12*time.Second, "for how long it is watched")
	flag.StringVar(&o.svg, "svg", "", "draw the curve to this `file`")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.BoolVar(&o.node, "node", false, "only be a node: print the address, end with the input")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scaleout:", err)
		os.Exit(1)
	}
}

// counts of nodes. The first is what the others are compared with.
var counts = []int{1, 2, 4, 8, 12, 16}

func (o *options) run(ctx context.Context) error {
	if o.node {
		return o.serve()
	}
	c := &curve{Rate: o.rate, Ranks: o.ranks, Batch: o.batch}
	for round := range o.rounds {
		speeds := make([]float64, len(counts))
		for i := range counts {
			at := (i + round) % len(counts)
			speed, err := o.measure(ctx, counts[at])
			if err != nil {
				return fmt.Errorf("%d nodes: %w", counts[at], err)
			}
			speeds[at] = speed
		}
		c.Rounds = append(c.Rounds, speeds)
	}
	if o.svg != "" {
		if err := os.WriteFile(o.svg, []byte(c.draw()), 0o644); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(c)
	}
	fmt.Print(c.table())
	return c.check()
}
