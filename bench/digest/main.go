// Command digest hashes what nodes deliver to a trainer written in Go: SHA-256 over index, label and pixels of every sample in order.
// The hash depends on the plan alone, not on how many nodes there are, on batch sizes or on what goes wrong on the way.
//
//	go run ./bench/digest -nodes 127.0.0.1:7070 -plan '{"source": {"root": "photos"}, "seed": 17, "shuffle": true, ...}' -epochs 2
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
)

func main() {
	nodes := flag.String("nodes", "127.0.0.1:7070", "addresses of nodes, separated by commas")
	plan := flag.String("plan", "{}", "the plan, JSON (docs/plan.md)")
	epochs := flag.Uint("epochs", 2, "how many epochs to hash")
	batch := flag.Int("batch", 64, "samples per batch; the hash does not depend on it")
	verbose := flag.Bool("v", false, "say what nodes do")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *nodes, *plan, uint32(*epochs), *batch, *verbose)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "digest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, plan string, epochs uint32, batch int, verbose bool) error {
	o := loader.Options{Options: client.Options{Plan: plan, Nodes: strings.Split(nodes, ",")}, Batch: batch, Epochs: epochs}
	if verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	l, err := loader.New(o)
	if err != nil {
		return err
	}
	defer l.Close()
	d := loader.NewDigest()
	for range epochs {
		for b, err := range l.Batches(ctx) {
			if err != nil {
				return err
			}
			err = d.Add(b)
			b.Release()
			if err != nil {
				return err
			}
		}
	}
	fmt.Println(d.Sum())
	return nil
}
