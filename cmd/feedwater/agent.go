package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/client/agent"
	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/local"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	"github.com/feedwater-io/feedwater/server/metrics"
	"github.com/feedwater-io/feedwater/server/tables"
	"github.com/feedwater-io/feedwater/span"
	"github.com/feedwater-io/feedwater/watch/gpus"
)

// agentEnv names the handle of the trainer's pidfd; docs/agent.md.
const (
	agentPidfdEnv  = "FEEDWATER_AGENT_PIDFD"
	agentControlFD = 3
)

func newAgent() *cobra.Command {
	return &cobra.Command{
		Use:    agentCommand,
		Short:  "The process beside a trainer; the Python package starts it",
		Long:   "The process beside a trainer. The Python package starts it, with the environment of the training script, which says what its options are:\n\n" + describeVariables(agentCommand, (&agentOptions{}).flagSet()),
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return runAgent(c.Context())
		},
	}
}

// agentOptions come from the environment alone: no one types an agent's command line.
type agentOptions struct {
	logOptions
	indexPlace
	lists        listPlace
	keep         bytesize.Size
	http         string
	httpInsecure bool
	logFile      string
}

// agentOptionsFromEnvironment reads FEEDWATER_LOG_FORMAT, FEEDWATER_INDEX and the like, and FEEDWATER_AGENT_HTTP.
func agentOptionsFromEnvironment() (*agentOptions, error) {
	o := &agentOptions{}
	f := o.flagSet()
	if err := fillFlags(agentCommand, f, nil); err != nil {
		return nil, err
	}
	return o, o.checkFlags()
}

const agentCommand = "agent"

func (o *agentOptions) flagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet(agentCommand, pflag.ContinueOnError)
	o.addTo(f)
	o.addFlags(f, "")
	o.lists.addFlags(f)
	addKeep(f, &o.keep)
	f.StringVar(&o.http, "http", "", "`address` for /metrics, /livez and /readyz: host:port of the first rank of this machine, the others count on from it")
	f.BoolVar(&o.httpInsecure, "http-insecure", false, "allow --http, which is not encrypted, to other machines")
	f.StringVar(&o.logFile, "log-file", "", "`file` that the log is appended to, besides what the trainer keeps of it for when the agent dies")
	for _, name := range []string{"http", "http-insecure", "log-file"} {
		f.Lookup(name).Annotations = map[string][]string{ownFlag: nil}
	}
	return f
}

// decodingVariables are those that are set and mean pictures that this process decodes.
func (o *agentOptions) decodingVariables() (names []string) {
	for _, name := range []string{"index", "index-limit", "index-copies", "keep"} {
		f := o.flags.Lookup(name)
		if _, from, ok := lookUpFlag(agentCommand, f); ok && given(f) {
			names = append(names, from)
		}
	}
	return names
}

// describeVariables says, for people, what each variable of a command's flags means.
func describeVariables(command string, flags *pflag.FlagSet) string {
	var text strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		if f.Value.Type() == "bool" {
			value = "true or false"
		}
		if set := f.DefValue; set != "" && set != "0" && set != "false" {
			usage += " (default " + set + ")"
		}
		fmt.Fprintf(&text, "  %s  %s\n      %s\n", variableFor(command, f), value, usage)
	})
	return strings.TrimSuffix(text.String(), "\n")
}

func (o *agentOptions) checkFlags() error {
	if err := checkKeep(envPrefix+"KEEP", o.keep); err != nil {
		return err
	}
	if err := o.logOptions.checkFlags(); err != nil || o.http == "" {
		return err
	}
	const name = envPrefix + "AGENT_HTTP"
	if err := checkHostPort(o.http); err != nil {
		return fmt.Errorf("%s=%s: %w", name, o.http, err)
	}
	if !isLocalAddress(o.http) && !o.httpInsecure {
		return fmt.Errorf("%s=%s is reachable from other machines and is not encrypted: use 127.0.0.1, or allow it with %s_INSECURE=1", name, o.http, name)
	}
	return nil
}

// openLog is where the log goes: to the trainer's memory, and to a file if one is named. Lines of several agents may go
// to one file.
func (o *agentOptions) openLog() (to io.Writer, end func(), err error) {
	if o.logFile == "" {
		return os.Stderr, func() {}, nil
	}
	f, err := os.OpenFile(o.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("%sAGENT_LOG_FILE: %w", envPrefix, err)
	}
	return io.MultiWriter(os.Stderr, f), func() { _ = f.Close() }, nil
}

// openLists is listPlace.openLists, where the index is kept apart from data sets too.
func (o *agentOptions) openLists(log *slog.Logger) (lists dataset.Options, given *tables.Store, closeLists func(), err error) {
	lists, given, closeLists, err = o.lists.openLists(log)
	lists.Apart = append(lists.Apart, o.apart(o.lists.dir)...)
	return lists, given, closeLists, err
}

// metricsAddress is that of this rank's agent: ranks of one machine have ports in a row.
func (o *agentOptions) metricsAddress() string {
	host, text, err := net.SplitHostPort(o.http)
	port, notNumber := strconv.Atoi(text)
	if err != nil || notNumber != nil || port == 0 {
		return o.http
	}
	for _, name := range []string{"LOCAL_RANK", "SLURM_LOCALID"} {
		if rank, err := strconv.Atoi(os.Getenv(name)); err == nil && rank >= 0 {
			return net.JoinHostPort(host, strconv.Itoa(port+rank))
		}
	}
	return o.http
}

// serveMetrics serves what there is to scrape of an agent, and of what it keeps. One that cannot be scraped works as well.
func (o *agentOptions) serveMetrics(ctx context.Context, a *agent.Agent, kept []prometheus.Collector, log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	newReadiness().addProbes(mux)
	handler, err := metricsHandler(append(kept, a.Metrics())...)
	if err == nil {
		mux.Handle("GET /metrics", handler)
		stop, err = serveWeb(ctx, webPort{flag: "http", addr: o.metricsAddress(), handler: mux}, log)
	}
	if err != nil {
		log.Warn("this agent has no metrics", "err", err)
		return func() {}
	}
	return stop
}

// serveStatus serves what watchers and scrapers ask of an agent. stop, which may be called again, ends both.
func (o *agentOptions) serveStatus(ctx context.Context, a *agent.Agent, kept []prometheus.Collector, log *slog.Logger) (stop func()) {
	stopWatchers, err := serveWatchers(ctx, a.Source())
	if err != nil {
		log.Warn("feedwater top will not find this agent", "error", err)
	}
	stopWatchers = sync.OnceFunc(stopWatchers)
	stopMetrics := o.serveMetrics(ctx, a, kept, log)
	return func() {
		stopWatchers()
		stopMetrics()
	}
}

func runAgent(ctx context.Context) error {
	if _, err := unix.GetsockoptInt(agentControlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return usageError{errors.New("the agent is started by feedwater.Loader, never by hand: its socket, handle 3, is not there")}
	}
	o, err := agentOptionsFromEnvironment()
	if err != nil {
		return usageError{err}
	}
	to, closeLog, err := o.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	log := o.newLog(to)
	preferToBeKilled()
	trainer, err := trainerHandle()
	if err != nil {
		return err
	}
	closeInherited(trainer)
	c := newCores()
	ctx, done := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { c.adjustUntilDone(ctx) })
	readings := gpus.New(log, ownFolders)
	watcher.Go(func() { readings.RunWhileWanted(ctx) })
	defer watcher.Wait()
	defer done()
	spans := span.Open(span.Options{Service: "feedwater-agent", Version: version, Log: log})
	defer spans.Close()
	lists, given, closeLists, err := o.openLists(log)
	if err != nil {
		return err
	}
	defer closeLists()
	pixels := pixelcache.New(int64(o.keep))
	defer pixels.Close()
	warnings := new(agent.Warnings)
	warnings.Add(slices.Concat(environmentWarnings(agentCommand, os.Environ()), optionWarnings(agentCommand, &o.indexPlace, &o.lists))...)
	index := o.openIndex(o.lists.dir, log, nil, func(what string) { warnings.Add(what) })
	own := newLocalPipelines(log, c, local.Options{
		Lists: lists, Tables: given, Index: index, Pixels: pixels, Tracer: spans.Tracer(),
	})
	own.decoding = o.decodingVariables()
	end := exitGuardOf(ctx)
	end.beforeForce(func() { logHanging(own.Storage().States(), log) })
	defer func() {
		own.Close()
		logHanging(own.Storage().States(), log)
	}()
	a := o.newAgentFor(trainer, own, log, float64(c.all), readings, warnings)
	stop := o.serveStatus(ctx, a, metrics.Kept("agent", pixels, countsOf(index)), log)
	defer stop()
	end.beforeForce(stop)
	defer end.startTimer() // the trainer has gone: what hangs keeps nobody
	return a.Run(ctx)
}

// newAgentFor is the agent of the trainer that started this process, with that trainer's pidfd. cores is how many this
// process may use.
func (o *agentOptions) newAgentFor(trainer *os.File, own *localPipelines, log *slog.Logger, cores float64, readings *gpus.Readings, warnings *agent.Warnings) *agent.Agent {
	return agent.New(agent.Options{
		Control:    os.NewFile(agentControlFD, "control"),
		Trainer:    trainer,
		TrainerPID: os.Getppid(), // it starts its agent itself
		Connect:    newConnector(own),
		List:       own.listFolder,
		Log:        log,
		Version:    version,
		Build:      buildOf(),
		Cores:      cores,
		GPUs:       readings.LatestStatus,
		Warnings:   warnings,
	})
}

// trainerHandle is the pidfd that the trainer handed down, nil if it said that there is none.
func trainerHandle() (*os.File, error) {
	text := os.Getenv(agentPidfdEnv)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= agentControlFD {
		return nil, fmt.Errorf("%s=%q is no handle", agentPidfdEnv, text)
	}
	return os.NewFile(uintptr(fd), "trainer"), nil
}

// closeInherited closes the handles that the trainer's libraries left open for its children, as far as the trainer
// could not have them closed. They are those that an exec would hand on: whatever this process opens is closed on exec.
func closeInherited(trainer *os.File) {
	first := agentControlFD + 1
	if trainer != nil {
		first = int(trainer.Fd()) + 1
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no /proc: they stay, and do no more harm than keep files open
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < first {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// preferToBeKilled asks the kernel to end this process, not the trainer, if memory runs out: an agent can be started
// again.
func preferToBeKilled() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0) // not allowed everywhere, and then not needed for being right
}
