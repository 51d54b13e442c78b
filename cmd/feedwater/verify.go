package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedwater-io/feedwater/client/comparison"
)

// verifyOptions are the flags of `feedwater verify`.
type verifyOptions struct {
	nodes, data    []string
	plan           string
	batches, batch int
	timeout        time.Duration
	json           bool
	reach          reachOptions
}

// notComparedError says that nothing is known of nodes that were to be compared.
type notComparedError struct{ error }

func notCompared(err error) error {
	return notComparedError{errors.New("not compared: " + inFlags(err.Error()))}
}

// errInterrupted says why nothing is known, in place of which want or call the signal ended.
var errInterrupted = errors.New("interrupted before all batches were there")

// errDiffer ends a comparison that found a difference.
var errDiffer = errors.New("the nodes differ: a job must not go from one to the other")

func newVerify() *cobra.Command {
	o := &verifyOptions{}
	c := &cobra.Command{
		Use:   "verify --nodes A,B",
		Short: "Compare batches of nodes bit for bit: the gate before a rollout",
		Long: `Has all nodes make the same batches and compares them bit for bit. The first node is what the others are held against: one that runs
today, say, and one of the version that is to come. It tells the first difference: batch, sample, file, field, offset, how many bytes.

Without --plan, batches are made of all data that the first node serves, with random crops, flips and RandAugment.
Exit codes: 0 equal, 1 different, 2 it could not be compared.`,
		Example: `  feedwater verify --nodes cpu-1:7070,cpu-2:7070 --insecure
  feedwater verify --nodes cpu-1:7070,cpu-2:7070 --tls-ca ca.pem --plan plan.json --batches 100 --json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.runVerify(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
			if errors.As(err, new(notComparedError)) && c.Context().Err() != nil {
				return notCompared(errInterrupted)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.nodes, "nodes", nil, "`nodes` to compare, two or more; docs/nodes.md")
	f.StringVar(&o.plan, "plan", "", "`file` with the plan, JSON; - for standard input (docs/plan.md)")
	f.StringSliceVar(&o.data, "data", nil, "`root` or root/path of the nodes to make batches of, without --plan (default: all roots of the first node)")
	f.IntVar(&o.batches, "batches", 1000, "batches to compare, of all roots together; one of each at least")
	f.IntVar(&o.batch, "batch-size", 32, "samples of a batch")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait for each batch; that it is there a node has to say within 10s of it")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.reach.addTo(f)
	addConfig(c, append(ownReach, "data")...)
	return c
}

func (o *verifyOptions) checkFlags() error {
	switch {
	case o.batches < 1:
		return fmt.Errorf("--batches %d: give 1 or more", o.batches)
	case o.batch < 1 || o.batch > 4096:
		return fmt.Errorf("--batch-size %d is not within 1 to 4096", o.batch)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %s: give more than 0", o.timeout)
	case o.plan != "" && len(o.data) > 0:
		return errors.New("--plan names its data itself: leave --data out")
	}
	return nil
}

func (o *verifyOptions) runVerify(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	if err := o.checkFlags(); err != nil {
		return usageError{err}
	}
	o.nodes = splitNodes(o.nodes)
	nodes, err := o.listNodes(ctx)
	if err != nil {
		return err
	}
	roots, err := comparison.AskRoots(ctx, nodes, o.timeout, o.reach.dialOptions())
	if err != nil {
		return notCompared(err)
	}
	plans, err := o.loadPlans(in, nodes[0], roots)
	if err != nil {
		return err
	}
	results, err := o.compareNodes(ctx, plans, nodes, errs)
	if err != nil {
		return notCompared(err)
	}
	equal := !slices.ContainsFunc(results, func(r *comparison.Result) bool { return !r.Equal() })
	if err := o.printResults(out, results, equal); err != nil {
		return notComparedError{err}
	}
	if !equal {
		return errDiffer
	}
	return nil
}

// listNodes are the nodes, in the order in which they are named where each is named by itself.
func (o *verifyOptions) listNodes(ctx context.Context) ([]string, error) {
	list, end, err := listNodes(ctx, o.nodes)
	if usage := (usageError{}); errors.As(err, &usage) {
		return nil, err
	} else if err != nil {
		return nil, notComparedError{err}
	}
	defer end()
	nodes, err := list.Nodes(ctx)
	if err != nil {
		return nil, notComparedError{err}
	}
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(o.positionOf(a), o.positionOf(b)) })
	if len(nodes) < 2 {
		return nil, usageError{fmt.Errorf("--nodes %s stands for %d nodes: name two or more, the first is what the others are held against", strings.Join(o.nodes, ","), len(nodes))}
	}
	return nodes, nil
}

func (o *verifyOptions) positionOf(node string) int {
	if i := slices.Index(o.nodes, node); i >= 0 {
		return i
	}
	return len(o.nodes)
}

// loadPlans are the user's, or one for each root, which share the batches: each has one at least, or nothing would be known of it.
func (o *verifyOptions) loadPlans(in io.Reader, node string, roots []string) ([]comparison.Part, error) {
	if o.plan != "" {
		text, err := readPlan(o.plan, in)
		if err != nil {
			return nil, usageError{err}
		}
		return []comparison.Part{{Plan: string(text), Batches: o.batches}}, nil
	}
	data := o.data
	if len(data) == 0 {
		data = roots
	}
	if len(data) == 0 {
		return nil, notCompared(fmt.Errorf("%s does not say what it serves: name it by --data", node))
	}
	return comparison.PlanParts(data, o.batches), nil
}

func (o *verifyOptions) compareNodes(ctx context.Context, plans []comparison.Part, nodes []string, errs io.Writer) ([]*comparison.Result, error) {
	bar := newProgress(errs)
	bar.of = "batches"
	defer bar.clearBar()
	var mu sync.Mutex // of bar
	log := newTerseLog(errs)
	var results []*comparison.Result
	done, all := 0, 0
	for _, p := range plans {
		all += p.Batches
	}
	for _, p := range plans {
		r, err := comparison.Run(ctx, comparison.Options{
			Plan: p.Plan, Nodes: nodes, Batches: p.Batches, Samples: o.batch, Timeout: o.timeout, Dialing: o.reach.dialOptions(), Log: log,
			Compared: func(n int) {
				mu.Lock()
				defer mu.Unlock()
				bar.showStep(done+n, all)
			},
		})
		if err != nil {
			return nil, err
		}
		done += p.Batches
		results = append(results, r)
	}
	return results, nil
}

// newTerseLog is a log for somebody who watches: warnings, in the words of flags, each of which is said once.
func newTerseLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(&onceWriter{w, map[string]bool{}}, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: stripTimes}))
}

// onceWriter writes each line a single time.
type onceWriter struct {
	w    io.Writer
	said map[string]bool
}

func (o *onceWriter) Write(line []byte) (int, error) {
	if o.said[string(line)] {
		return len(line), nil
	}
	o.said[string(line)] = true
	return o.w.Write(line)
}

// stripTimes leaves out of a log's line what makes it another one each time, and speaks of flags.
func stripTimes(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "waited", "timeout":
		return slog.Attr{}
	case "err", "nodes":
		return slog.String(a.Key, inFlags(a.Value.String()))
	}
	return a
}

func (o *verifyOptions) printResults(out io.Writer, results []*comparison.Result, equal bool) error {
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"equal": equal, "comparisons": results})
	}
	for _, n := range results[0].Nodes {
		fmt.Fprintf(out, "%s  %s  %s  numerics %.12s\n", n.Addr, n.Build, n.Kernels, n.Numerics)
	}
	for _, r := range results {
		verdict := "all equal"
		switch {
		case r.Batches == 0:
			verdict = "there is no sense in it"
		case r.Differing > 0:
			verdict = fmt.Sprintf("%d differ", r.Differing)
		}
		fmt.Fprintf(out, "data %.12s: %d batches of %d samples compared: %s\n", r.Data, r.Batches, r.Samples, verdict)
		for _, a := range slices.Concat(r.Answers, r.Codecs) {
			fmt.Fprintf(out, "  %s\n", a)
		}
		if r.First != nil {
			fmt.Fprintf(out, "  first: %s\n", r.First)
		}
	}
	return nil
}
