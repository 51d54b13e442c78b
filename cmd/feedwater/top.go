package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/feedwater-io/feedwater/client/membership"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/history"
	"github.com/feedwater-io/feedwater/watch/page"
	"github.com/feedwater-io/feedwater/watch/top"
)

// topOptions are the flags of `feedwater top`.
type topOptions struct {
	interval   time.Duration
	once, json bool
	page       string
	reach      reachOptions
}

func newTop() *cobra.Command {
	o := &topOptions{}
	c := &cobra.Command{
		Use:   "top [NODES...]",
		Short: "Show whether GPUs wait for data, why, and what to do",
		Long: `Shows, for each job, how many GPUs stand still for data, the most likely cause and what to do about it; then ranks, nodes, GPUs and
machines. Trainers of this user on this machine are found by themselves; nodes are named, as for trainers: host:port, dns:name:port,
file:path and others, docs/nodes.md.

With --once the exit code is 1 if nodes are named and none answers.

Keys are in the last line: Enter shows one job with its ranks, / shows the jobs that have what is typed in their name or verdict.

"?" is what nobody knows; it is never shown as 0. The idle of GPUs is known where a training loop uses one CUDA stream.
In the line of wants each letter is a batch that arrived, by node; capitals are hedges, · is out, x cancelled, ! failed. The line below it
counts what the rank's agent has done about slow nodes: wants moved, batches that a second node was asked for, what was made for nothing.`,
		Example: `  feedwater top
  feedwater top cpu-1:7070 cpu-2:7070 --insecure --interval 0.5s
  feedwater top --once --json | jq '.jobs[0].verdict'`,
		RunE: func(c *cobra.Command, hosts []string) error {
			return o.runTop(c.Context(), splitNodes(hosts), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.DurationVar(&o.interval, "interval", time.Second, "time between two looks, 0.1s to 60s")
	f.BoolVar(&o.once, "once", false, "print once and end")
	f.BoolVar(&o.json, "json", false, "print JSON: once with --once, else one object per line")
	f.StringVar(&o.page, "page", "", "show it as a page at this `address` instead, for a browser")
	o.reach.addTo(f)
	addConfig(c, append(ownReach, "interval")...)
	return c
}

func (o *topOptions) checkFlags(hosts []string) error {
	if o.interval < 100*time.Millisecond || o.interval > time.Minute {
		return fmt.Errorf("--interval %s is not within 0.1s to 60s", o.interval)
	}
	if o.page != "" {
		if o.once || o.json {
			return errors.New("--page shows a page until it is stopped: leave out --once and --json")
		}
		if err := checkHostPort(o.page); err != nil {
			return fmt.Errorf("--page %s: %w", o.page, err)
		}
	}
	for _, h := range hosts {
		if _, err := o.reach.dialOptions().GRPC(h); err != nil && membership.CheckAddress(h) == nil {
			return errors.New(inFlags(err.Error()))
		}
	}
	return nil
}

func (o *topOptions) runTop(ctx context.Context, hosts []string, out io.Writer) error {
	if err := o.checkFlags(hosts); err != nil {
		return usageError{err}
	}
	if o.page == "" && !o.once && !o.json && windowOf(out) == nil {
		return usageError{errors.New("top draws on a terminal, and this output is none: --once prints once, --json prints JSON, --page ADDRESS serves a page")}
	}
	list, end, err := listNodes(ctx, hosts)
	if err != nil {
		return err
	}
	defer end()
	listed := func() []string {
		nodes, _ := list.Nodes(ctx) // the error is ctx's: sources that have told once keep what they told
		return nodes
	}
	p := top.NewPoller(top.Options{Hosts: listed, Agents: agentSockets, Interval: o.interval, Dial: o.reach.dialOptions().GRPC})
	p.Start()
	defer p.Close()
	switch {
	case o.page != "":
		return o.servePage(ctx, p, out)
	case o.once:
		return o.printOnce(ctx, p, hosts, out)
	case o.json:
		return o.printLines(ctx, p, out)
	}
	return top.Show(ctx, p, version)
}

// listNodes follows the nodes that are named until end is called. The first answers have come when it returns.
func listNodes(ctx context.Context, nodes []string) (list *membership.List, end func(), err error) {
	if list, err = membership.NewList(nodes); err != nil {
		return nil, nil, usageError{err}
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { list.Run(ctx) })
	end = func() {
		stop()
		running.Wait()
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := list.Nodes(first); err != nil {
		end()
		return nil, nil, fmt.Errorf("the nodes cannot be listed: %w", err)
	}
	return list, end, nil
}

// servePage shows the page until ctx ends.
func (o *topOptions) servePage(ctx context.Context, p *top.Poller, out io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.page)
	if err != nil {
		return fmt.Errorf("--page %s: %w", o.page, err)
	}
	past, overview := history.New(), func() *watch.Overview { return p.Overview(time.Now()) }
	defer runHistory(ctx, past, overview)()
	h := &http.Server{
		Handler:     page.Handler(page.Options{Overview: overview, History: past}),
		ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	defer stop()
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// patience is how long --once waits for hosts that do not answer.
const patience = 5 * time.Second

// printOnce prints what is known soon. It is an error if hosts are named and none of them tells anything.
func (o *topOptions) printOnce(ctx context.Context, p *top.Poller, hosts []string, out io.Writer) error {
	p.AwaitRates(ctx, patience+2*o.interval)
	overview := p.Overview(time.Now())
	if err := o.printOverview(overview, out); err != nil {
		return err
	}
	if len(hosts) > 0 && !p.HostsTell() {
		return fmt.Errorf("no node answers: %s", strings.Join(hosts, ", "))
	}
	return nil
}

func (o *topOptions) printOverview(overview *watch.Overview, out io.Writer) error {
	if o.json {
		return json.NewEncoder(out).Encode(overview)
	}
	text := top.Render(top.Screen{Overview: overview, Width: terminalWidth(out), Interval: o.interval, Open: true, Version: version})
	_, err := fmt.Fprintln(colorprofile.NewWriter(out, os.Environ()), text)
	return err
}

// printLines prints an object per interval until ctx ends.
func (o *topOptions) printLines(ctx context.Context, p *top.Poller, out io.Writer) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	encoder := json.NewEncoder(out)
	for {
		select {
		case now := <-tick.C:
			if err := encoder.Encode(p.Overview(now)); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
