package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/feedwater-io/feedwater/cmd/feedwater/internal/bytesize"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/span"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/history"
	"github.com/feedwater-io/feedwater/watch/page"
)

// serveOptions are the flags of `feedwater serve`.
type serveOptions struct {
	data          folders
	preloads      sources
	links         string
	announced     string // folder
	listen, http  string
	health, pprof string
	secureOptions
	logOptions
	hostConns int
	hostShare float64
	workers   int
	memory    bytesize.Size
	share     bytesize.Size
	ahead     bytesize.Size
	keep      bytesize.Size
	lists     listPlace
	indexes   indexPlace
	drain     time.Duration
	read      time.Duration
	testNode  pipeline.TestNode
}

func newServe() *cobra.Command {
	o := &serveOptions{data: folders{}, preloads: sources{}, memory: standardMemory("/"), ahead: 256 << 20}
	c := &cobra.Command{
		Use:   "serve --data NAME=FOLDER",
		Short: "Make batches for trainers: run this on each CPU node",
		Long: `Makes batches of decoded and augmented images for trainers, from image folders of this machine.

A folder holds one folder per class, as torchvision's ImageFolder wants it. A trainer names it, or a folder below it:
feedwater.Loader("imagenet/train", ..., nodes="HOST:7070"). All nodes of a job need the same files; where they lie does not matter.

The node keeps nothing: it can be killed, restarted or joined by others at any time, and trainers go on with the same batches.
SIGTERM and Ctrl-C finish what is in flight, then exit 0; a second Ctrl-C ends the node at once.`,
		Example: `  feedwater serve --data imagenet=/data/imagenet
  feedwater serve --data imagenet=/data/imagenet --listen :7070 --tls-cert node.pem --tls-key node-key.pem --client-ca ca.pem
  feedwater serve --data imagenet=/data/imagenet --listen 10.0.0.5:7070 --insecure --http :7071
  feedwater serve --data imagenet='s3://bucket/imagenet?region=eu-central-1' --data small=https://host/small
  FEEDWATER_DATA=photos=/data/photos feedwater serve`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.runNode(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.Var(o.data, "data", "folder to serve, or s3://bucket/prefix or https://host/path, and the name that trainers know it by; more than once for more")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "`address` to listen on: host:port, :port for all networks, or unix:/path")
	f.StringVar(&o.http, "http", "", "`address` for the page that shows what top shows, /metrics, /livez and /readyz, encrypted if --listen is; none by default")
	f.StringVar(&o.health, "health", "", "`address` for /livez and /readyz alone, never encrypted: for probes; none by default")
	f.StringVar(&o.announced, "announce", "", "`folder` to write this node's address to while it serves, for trainers that have file:FOLDER; none by default")
	f.StringVar(&o.pprof, "pprof", "", "`address` of this machine, as unix:/path, for Go's profiles at /debug/pprof/; none by default")
	o.secureOptions.addTo(f)
	f.IntVar(&o.hostConns, "max-connections", 0, "connections from one address at once (default 256)")
	f.Float64Var(&o.hostShare, "address-share", 0, "share of one core that each address may take for connections, handshakes and requests (default 0.05)")
	f.IntVar(&o.workers, "workers", 0, "samples to decode at once (default: one per core this process may use)")
	f.Var(&o.memory, "max-memory", "memory for batches in the making and on their way; by default 4GiB, or half of what this machine or its control group has")
	f.Var(&o.share, "share-memory", "make batches that several jobs want once, and keep so much of them for those that come later; none by default")
	addKeep(f, &o.keep)
	o.lists.addFlags(f)
	f.StringVar(&o.links, "links", "", "where links in the data may lead: beneath, which is their root, or anywhere (default: beneath if there are --identities)")
	f.Var(o.preloads, "preload", "data set of --data, or of a folder below it, to list before the node is ready; more than once for more")
	o.indexes.addFlags(f, "; off: none")
	f.DurationVar(&o.drain, "drain-timeout", 30*time.Second, "how long to finish what is in flight when told to stop")
	f.Var(&o.ahead, "read-ahead", "memory for files of buckets and web servers that are read before workers need them; 0: none are")
	f.DurationVar(&o.read, "read-timeout", bulkhead.DefaultDeadline, "how long a file may take to be read; then its batch is made by another node, and its root counts as sick until it answers")
	o.logOptions.addTo(f)
	addTestNode(f, &o.testNode)
	addConfig(c)
	return c
}

// leastMemory is less than any batch takes that is worth sending, in bytes.
const leastMemory = 1 << 20

// leastReadTimeout is what storage that is well may take now and then.
const leastReadTimeout = time.Second

// maxWorkers is more than any machine has cores.
const maxWorkers = 4096

func (o *serveOptions) checkFlags() error {
	if err := checkAddress(o.listen); err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	switch {
	case len(o.data) == 0:
		return errors.New("nothing to serve: give --data NAME=FOLDER")
	case o.workers < 0 || o.workers > maxWorkers:
		return fmt.Errorf("--workers %d is not within 0 (one per core) to %d", o.workers, maxWorkers)
	case o.memory < leastMemory:
		return fmt.Errorf("--max-memory %s: no batch fits; give %s at least", &o.memory, new(bytesize.Size(leastMemory)))
	case o.read != 0 && o.read < leastReadTimeout:
		return fmt.Errorf("--read-timeout %s: give %s at least", o.read, leastReadTimeout)
	case o.links != "" && o.links != "beneath" && o.links != "anywhere":
		return fmt.Errorf("--links %q is neither beneath nor anywhere", o.links)
	case o.drain < 0:
		return fmt.Errorf("--drain-timeout %s is negative", o.drain)
	case o.hostConns < 0:
		return fmt.Errorf("--max-connections %d is negative", o.hostConns)
	case !(o.hostShare >= 0 && o.hostShare <= maxWorkers):
		return fmt.Errorf("--address-share %g is not within 0 (0.05) to %d", o.hostShare, maxWorkers)
	}
	for flag, addr := range map[string]string{"http": o.http, "health": o.health} {
		if err := checkAddress(addr); addr != "" && err != nil {
			return fmt.Errorf("--%s %s: %w", flag, addr, err)
		}
	}
	for _, err := range []error{
		o.logOptions.checkFlags(), checkKeep("--keep", o.keep), o.indexes.checkFlags(), o.preloads.checkRoots(o.data), checkProfile(o.pprof), o.secureOptions.checkFlags(o.listen, o.http, o.data.sortedNames()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// runNode serves until ctx ends, then drains.
func (o *serveOptions) runNode(ctx context.Context, stdout, stderr io.Writer) (failure error) {
	if err := o.checkFlags(); err != nil {
		return usageError{err}
	}
	log := o.newLog(stderr)
	if err := o.data.checkExist(log); err != nil {
		return usageError{err}
	}
	warnOfEnvironment("serve", log)
	for _, w := range optionWarnings("serve", &o.indexes, &o.lists) {
		log.Warn(w)
	}
	secure, endAudit, err := o.openSecurity(ctx, stdout, log)
	if err != nil {
		return err
	}
	defer endAudit()
	defer onHangup(log, secure.reloadChanged)()
	ready := newReadiness(pb.Feed_ServiceDesc.ServiceName)
	ready.addCheck(func() error { return admission.CheckOwnCertificate(secure.tls, time.Now()) }, log)
	started := ready.waitFor("the start")
	stopProbes, err := o.serveProbes(ctx, ready, log)
	if err != nil {
		return err
	}
	defer stopProbes()
	warnOfMemory(log, o.memory, o.share, o.keep, "/")
	limit := limitMemory(int64(o.memory + o.share + o.aheadMemory() + o.keptInHeap()))
	defer limit.restoreLimit()
	lists, given, closeLists, err := o.lists.openLists(log)
	if err != nil {
		return err
	}
	defer closeLists()
	pixels := pixelcache.New(int64(o.keep))
	defer pixels.Close()
	index := o.indexes.openIndex(o.lists.dir, log, limit.addHeld, nil)
	p, err := o.openPipeline(pixels, index, log)
	if err != nil {
		return err
	}
	defer func() {
		p.Close()
		failure = withHanging(failure, p.Storage().States())
	}()
	spans := span.Open(span.Options{Service: "feedwater-node", Version: version, Log: log})
	defer spans.Close()
	lists.Progress, lists.Apart = scanProgress(log), append(lists.Apart, o.indexes.apart(o.lists.dir)...)
	options := o.serverOptions(secure, ready)
	options.Engine, options.Tables, options.ReadCache, options.Pixels = server.NewEngine(p, lists), given, lists.ReadCache, pixels
	options.Index, options.Tracer, options.Log = countsOf(index), spans.Tracer(), log
	s := server.New(options)
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	defer o.preloads.preloadAll(ctx, ready, s.Preload, log)()
	defer stop()
	return o.serveFeed(ctx, s, secure, ready, func(addr string) {
		started()
		log.Info("listening", "addr", addr, "data", strings.Join(o.data.sortedNames(), ","), "workers", p.Workers(), "kernels", p.Kernels(), "numerics", p.Numerics(), "version", version, "build", buildOf())
	}, log)
}

// serverOptions are what flags say of a server, and who hears of it.
func (o *serveOptions) serverOptions(secure security, ready *readiness) server.Options {
	return server.Options{
		Roots: o.absoluteRoots(), LinksBeneath: o.linksBeneath(),
		NodeBytes: int64(o.memory), ShareBytes: int64(o.share),
		Version: version, Build: buildOf(),
		OnDrain: ready.setDraining,
		OnRoot:  announceRoots(ready.node, o.data.sortedNames()),
		TLS:     secure.tls, Access: secure.access, Audit: secure.audit, HostConnections: o.hostConns, HostShare: o.hostShare,
	}
}

// openPipeline starts the workers.
func (o *serveOptions) openPipeline(pixels *pixelcache.Cache, index *pipeline.IndexOptions, log *slog.Logger) (*pipeline.Pipeline, error) {
	return pipeline.Open(pipeline.Options{
		Pixels:  pixels,
		Workers: o.workers, OnPanic: panicLog(log), TestNode: o.testNode,
		Index:       index,
		ReadTimeout: o.read, ReadAhead: readAhead(o.ahead),
	})
}

// serveFeed listens, calls started with its address, and serves until ctx ends; then it drains.
func (o *serveOptions) serveFeed(ctx context.Context, s *server.Server, secure security, ready *readiness, started func(addr string), log *slog.Logger) error {
	g := grpc.NewServer(s.GRPCOptions()...)
	defer g.Stop() // does nothing after stop
	s.Register(g)
	healthpb.RegisterHealthServer(g, ready.node)
	reflection.Register(g)
	listener, err := openListener(ctx, o.listen)
	if err != nil {
		return err
	}
	stopHTTP, err := o.serveHTTP(ctx, s, secure.tls, ready, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer stopHTTP()
	endAnnouncement, err := o.announce(ctx, listener, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer endAnnouncement()
	end := exitGuardOf(ctx)
	end.allowWait(o.drain)
	end.beforeForce(func() {
		logHanging(s.Storage(), log)
		_ = listener.Close()
		stopHTTP()
		g.Stop()
	})
	served := make(chan error, 1)
	go func() { served <- g.Serve(s.Listener(newLoggedListener(listener, log))) }()
	started(addressOf(listener))
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	o.drainServer(g, s, log)
	if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // told to stop before it had begun to serve
		return err
	}
	return nil
}

// serveProbes serves --health and --pprof, from before the start is over; stop ends both.
func (o *serveOptions) serveProbes(ctx context.Context, ready *readiness, log *slog.Logger) (stop func(), err error) {
	stopHealth, err := ready.serveHealth(ctx, o.health, log)
	if err != nil {
		return nil, err
	}
	stopProfile, err := serveProfile(ctx, o.pprof, log)
	if err != nil {
		stopHealth()
		return nil, err
	}
	stop = func() { stopProfile(); stopHealth() }
	exitGuardOf(ctx).beforeForce(stop)
	return stop, nil
}

// serveHTTP serves --http, encrypted as --listen is.
func (o *serveOptions) serveHTTP(ctx context.Context, s *server.Server, tls *tls.Config, ready *readiness, log *slog.Logger) (stop func(), err error) {
	if o.http == "" {
		return func() {}, nil
	}
	live, past := page.NewLive(s.Source()), history.New()
	handler, err := nodePage(s, live, past, ready)
	if err != nil {
		return nil, err
	}
	stopWeb, err := serveWeb(ctx, webPort{flag: "http", addr: o.http, tls: tls, gate: s.Listener, handler: handler}, log)
	if err != nil {
		return nil, err
	}
	stopPast := runHistory(ctx, past, live.Overview)
	return func() { stopWeb(); stopPast() }, nil
}

// runHistory has the past remembered until stop is called.
func runHistory(ctx context.Context, past *history.History, overview func() *watch.Overview) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { past.Run(ctx, overview) })
	return func() {
		end()
		running.Wait()
	}
}

// linksBeneath reports whether links must stay in their root: what one identity may read is no other's who can make
// links.
func (o *serveOptions) linksBeneath() bool {
	return o.links == "beneath" || o.links == "" && len(o.identities) > 0
}

// panicLog logs panics on samples, whose wants end with the error.
func panicLog(log *slog.Logger) func(*pipeline.PanicError) {
	return func(e *pipeline.PanicError) { log.Error("panic", "err", e, "stack", string(e.Stack)) }
}

// drainServer finishes what is in flight, for as long as --drain-timeout allows.
func (o *serveOptions) drainServer(g *grpc.Server, s *server.Server, log *slog.Logger) {
	log.Info("draining", "timeout", o.drain)
	ctx, cancel := context.WithTimeout(context.Background(), o.drain)
	defer cancel()
	if err := s.Stop(ctx, g); err != nil {
		log.Warn("drain timed out; trainers take what was in flight elsewhere")
	}
	log.Info("stopped")
}

// keptInHeap is what kept pixels take of the memory that the garbage collector counts.
func (o *serveOptions) keptInHeap() bytesize.Size {
	if pixelcache.InHeap {
		return o.keep
	}
	return 0
}

// aheadMemory is what files take that are read ahead: none where all data lie on file systems.
func (o *serveOptions) aheadMemory() bytesize.Size {
	for _, place := range o.data {
		if dataset.IsURL(place) {
			return o.ahead
		}
	}
	return 0
}

// readAhead is a number of bytes as a pipeline takes it.
func readAhead(bytes bytesize.Size) int64 {
	if bytes == 0 {
		return -1
	}
	return int64(bytes)
}

func (o *serveOptions) absoluteRoots() map[string]string {
	roots := map[string]string{}
	for name, folder := range o.data {
		if abs, err := filepath.Abs(folder); err == nil && !dataset.IsURL(folder) {
			folder = abs
		}
		roots[name] = folder
	}
	return roots
}

// scanProgress logs how far scans are, at most every few seconds, however many there are at once.
func scanProgress(log *slog.Logger) func(int) {
	var mu sync.Mutex
	var last time.Time
	return func(files int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			if !last.IsZero() {
				log.Info("scanning", "files", files)
			}
			last = now
		}
	}
}
