package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/local"
)

// localPipelines are the pipelines of an agent's own process.
type localPipelines struct {
	*local.Pipelines
	cores    *cores
	tracer   trace.Tracer // nil: none
	decoding []string     // variables that mean pictures that are decoded here
	decodes  sync.Once    // it is known whether they are
}

// newLocalPipelines returns those of an agent, that log.
func newLocalPipelines(log *slog.Logger, c *cores, o local.Options) *localPipelines {
	o.Progress, o.OnPanic, o.Version, o.Build, o.Log = scanProgress(log), panicLog(log), version, buildOf(), log
	return &localPipelines{cores: c, tracer: o.Tracer, Pipelines: local.New(o)}
}

// newNode is the pipeline with that many workers; 0: this rank's share of the cores. plan is as local.Pipelines.Node has it.
func (l *localPipelines) newNode(workers int, plan string) (node.Node, error) {
	if workers <= 0 {
		workers = shareOfCores(l.cores.all)
	}
	l.decodes.Do(func() {})
	l.cores.takeAll()
	own, err := l.Node(workers, plan)
	if err != nil {
		return nil, err
	}
	return own, nil
}

// listFolder is what a folder of this machine holds.
func (l *localPipelines) listFolder(ctx context.Context, folder string) (agent.Listing, error) {
	found, err := l.List(ctx, folder)
	return agent.Listing{Fingerprint: found.Fingerprint, Counts: found.Counts, Keys: found.Keys}, err
}

// shareOfCores divides the cores this process may use among the ranks of this host.
func shareOfCores(all int) int {
	ranks, err := strconv.Atoi(os.Getenv("LOCAL_WORLD_SIZE"))
	if err != nil || ranks < 1 {
		ranks = 1
	}
	return max(1, all/ranks)
}

// rankOrProcess tells this trainer from others of its job: its rank, or where launchers set none its process.
func rankOrProcess() int {
	if rank, err := strconv.Atoi(os.Getenv("RANK")); err == nil {
		return rank
	}
	return os.Getppid()
}

// newConnector makes the fleet of a Loader.
func newConnector(local *localPipelines) func(context.Context, agent.Plan) (*client.Fleet, error) {
	return func(ctx context.Context, p agent.Plan) (*client.Fleet, error) {
		o, err := local.fleetOptions(ctx, p)
		if err != nil {
			return nil, err
		}
		return client.New(o)
	}
}

// fleetOptions are those of a Loader's fleet: its nodes, this process's own pipeline where there are none, or both where the plan says how many
// workers that has beside them.
func (l *localPipelines) fleetOptions(ctx context.Context, p agent.Plan) (client.Options, error) {
	o := client.Options{
		Plan: string(p.Text), Table: p.Table, Job: p.Job, Rank: rankOrProcess(), Nodes: p.Nodes, Numerics: p.Numerics, Fingerprint: p.Fingerprint,
		Revisions: p.Revisions, Stores: p.Stores, Build: buildOf(),
		StartTimeout: p.StartTimeout, Timeout: p.Timeout,
		Dialing: node.DialOptions{Insecure: p.Insecure, Files: p.TLS, TokenFile: p.TokenFile}, Tracer: l.tracer, Log: p.Log,
	}
	var err error
	if o.Scaler, err = scalerOf(p, o.Dialing); err != nil {
		return o, err
	}
	own := "" // plan of the local node
	if len(p.Nodes) > 0 && p.Local != "" {
		if own, o.Plan, err = l.MatchByFingerprint(ctx, p.Text, p.Local, p.Table); err != nil {
			return o, err
		}
	}
	if len(p.Nodes) > 0 && (p.Workers == 0 || p.Local == "") {
		l.warnOfDecoding(p.Log)
		return o, nil
	}
	o.Local, err = l.newNode(p.Workers, own)
	return o, err
}

// warnOfDecoding tells the first Loader, if nodes make all of its batches, what its environment says for nothing.
func (l *localPipelines) warnOfDecoding(log *slog.Logger) {
	l.decodes.Do(func() {
		if len(l.decoding) == 0 {
			return
		}
		serve := strings.Replace(strings.Replace(l.decoding[0], "_AGENT_", "_", 1), envPrefix, envPrefix+"SERVE_", 1)
		log.Warn(fmt.Sprintf("%s: nothing here uses this, since nodes decode the pictures of this Loader; set it where `feedwater serve` runs, as %s if trainers have the same environment",
			strings.Join(l.decoding, ", "), serve))
	})
}
