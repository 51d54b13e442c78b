package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// serveOptions are the flags of `feedwater serve`.
type serveOptions struct {
	data         map[string]string
	listen, http string
	insecure     bool
	workers      int
	memory       byteSize
	cacheDir     string
	drain        time.Duration
	logFormat    string
	logLevel     slog.Level
	numerics     string
}

func newServe() *cobra.Command {
	o := &serveOptions{memory: 4 << 30}
	level := "info"
	c := &cobra.Command{
		Use:   "serve --data NAME=FOLDER",
		Short: "Make batches for trainers: run this on each CPU node",
		Long: `Makes batches of decoded and augmented images for trainers, from image folders of this machine.

A folder holds one folder per class, as torchvision's ImageFolder wants it. A trainer names it, or a folder below it:
feedwater.Loader("imagenet/train", ..., nodes="HOST:7070"). All nodes of a job need the same files; where they lie does not matter.

The node keeps nothing: it can be killed, restarted or joined by others at any time, and trainers go on with the same batches.
SIGTERM and Ctrl-C finish what is in flight, then exit 0.`,
		Example: `  feedwater serve --data imagenet=/data/imagenet
  feedwater serve --data imagenet=/data/imagenet --listen 10.0.0.5:7070 --insecure --http :7071
  FEEDWATER_DATA=photos=/data/photos feedwater serve`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.logLevel.UnmarshalText([]byte(level)); err != nil {
				return usageError{fmt.Errorf("--log-level %q is none of debug, info, warn, error", level)}
			}
			return o.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringToStringVar(&o.data, "data", nil, "folder to serve and the `NAME=FOLDER` it has for trainers; more than once for more")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "`address` to listen on: host:port, :port for all networks, or unix:/path")
	f.StringVar(&o.http, "http", "", "`address` for /metrics and /healthz; none by default")
	f.BoolVar(&o.insecure, "insecure", false, "allow unencrypted connections from other machines")
	f.IntVar(&o.workers, "workers", 0, "samples to decode at once (default: one per core this process may use)")
	f.Var(&o.memory, "max-memory", "memory for batches in the making and on their way")
	f.StringVar(&o.cacheDir, "cache-dir", "", "`folder` for lists of files, so that a restart need not scan again (default: the user's cache folder)")
	f.DurationVar(&o.drain, "drain-timeout", 30*time.Second, "how long to finish what is in flight when told to stop")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.numerics, "test-numerics", "", "pretend to compute differently, for tests of trainers")
	_ = f.MarkHidden("test-numerics")
	addConfig(c)
	return c
}

func (o *serveOptions) check() error {
	switch {
	case len(o.data) == 0:
		return errors.New("nothing to serve: give --data NAME=FOLDER")
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format %q is neither text nor json", o.logFormat)
	case !o.insecure && !isLocalAddress(o.listen):
		return fmt.Errorf("--listen %s is reachable from other machines and nothing is encrypted: listen on 127.0.0.1 or unix:/path, or allow it with --insecure", o.listen)
	}
	for name, folder := range o.data {
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("--data %s=%s: a name is one word without slashes", name, folder)
		}
		info, err := os.Stat(folder)
		if err != nil {
			return fmt.Errorf("--data %s: %w", name, err)
		}
		if !info.IsDir() {
			return fmt.Errorf("--data %s: %s is no folder", name, folder)
		}
	}
	return nil
}

// isLocalAddress reports whether only this machine can connect to addr.
func isLocalAddress(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (o *serveOptions) log() *slog.Logger {
	options := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// run serves until ctx ends, then drains.
func (o *serveOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return usageError{err}
	}
	log := o.log()
	p, err := pipeline.Open(pipeline.Options{Workers: o.workers, Numerics: o.numerics})
	if err != nil {
		return err
	}
	defer p.Close()
	node := health.NewServer()
	s := server.New(server.Options{
		Engine:    server.NewEngine(p, dataset.Options{CacheDir: o.cacheDir, Progress: scanProgress(log)}),
		Roots:     o.absolute(),
		NodeBytes: int64(o.memory),
		Version:   version,
		OnDrain:   node.Shutdown,
		Log:       log,
	})
	defer s.Close()
	g := grpc.NewServer(s.GRPCOptions()...)
	s.Register(g)
	healthpb.RegisterHealthServer(g, node)
	reflection.Register(g)
	node.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	node.SetServingStatus(pb.Feed_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	listener, err := listen(ctx, o.listen)
	if err != nil {
		return err
	}
	stopHTTP, err := serveHTTP(ctx, o.http, s, node, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer stopHTTP()
	log.Info("listening", "addr", listener.Addr().String(), "data", o.names(), "workers", p.Workers(), "kernels", p.Kernels(), "numerics", p.Numerics(), "version", version)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	o.stop(g, s, log)
	return <-served
}

// stop finishes what is in flight, for as long as --drain-timeout allows.
func (o *serveOptions) stop(g *grpc.Server, s *server.Server, log *slog.Logger) {
	log.Info("draining", "timeout", o.drain)
	ctx, cancel := context.WithTimeout(context.Background(), o.drain)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		log.Warn("drain timed out; trainers take what was in flight elsewhere")
	}
	g.Stop()
	log.Info("stopped")
}

func (o *serveOptions) absolute() map[string]string {
	roots := map[string]string{}
	for name, folder := range o.data {
		if abs, err := filepath.Abs(folder); err == nil {
			folder = abs
		}
		roots[name] = folder
	}
	return roots
}

func (o *serveOptions) names() string {
	var names []string
	for name := range o.data {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// scanProgress logs how far a scan is, at most every few seconds.
func scanProgress(log *slog.Logger) func(int) {
	var last time.Time
	return func(files int) {
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			if !last.IsZero() {
				log.Info("scanning", "files", files)
			}
			last = now
		}
	}
}

// listen opens the port, or the socket of a path.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", addr, err)
	}
	return l, nil
}

// serveHTTP serves /metrics and /healthz if addr is set; stop ends it.
func serveHTTP(ctx context.Context, addr string, s *server.Server, node *health.Server, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{s, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { healthz(w, r, node) })
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w", addr, err)
	}
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("http", "error", err)
		}
	}()
	log.Info("http", "addr", l.Addr().String())
	return func() {
		_ = h.Close()
		<-done
	}, nil
}

// healthz is 200 while the node takes wants, 503 while it drains.
func healthz(w http.ResponseWriter, r *http.Request, node *health.Server) {
	answer, err := node.Check(r.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
