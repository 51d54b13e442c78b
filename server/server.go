// Package server is a node: it offers a pipeline's batches over gRPC as proto/feedwater/v1 says. It finds the data that
// plans name and shares each snapshot among all who use it, lends slots within a budget, sends batches by reference to
// them, and turns errors into codes. It makes no pixels itself, keeps nothing of a trainer beyond its stream, and
// listens nowhere: that is the caller's part.
//
// Goroutines: each Fetch stream has its handler, one goroutine that receives, one that sends, and after its end one
// that waits until everything lent to it is back; each scan of a folder has one. Close waits for all of them.
package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/tap"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/audit"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/server/dedup"
	"github.com/feedwater-io/feedwater/server/demand"
	"github.com/feedwater-io/feedwater/server/lifecycle"
	"github.com/feedwater-io/feedwater/server/metrics"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/server/thumbnail"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Server is a node. Its methods may be called from many goroutines at once; those that take and give messages of
// feedwater.proto work without a wire too.
type Server struct {
	pb.UnimplementedFeedServer
	options Options
	engine  Engine
	finder  *snapshots.Finder
	jobs    *jobBinder
	memory  *batchmem.Memory
	metrics *metrics.Collector
	streams *lifecycle.Streams
	close   sync.Once
	closing chan struct{} // closed by Close
	replays chan struct{} // holds one element per Replay that is being answered
	garbage batchmem.Collector
	guard   *admission.Guard
	audit   *audit.Log
	book    pulse.Registry
	runs    runs.Registry
	shared  *dedup.Group
	demand  *demand.Meter
	load    *metrics.Load
	misread *admission.SampledLog // what it could not read
	waits   *admission.SampledLog // what it waits for
	roots   *bulkhead.Roots
	source  *watch.Source

	thumbnails thumbnail.Keeper

	watchers atomic.Int64
	watching sync.WaitGroup // what answers them
}

// New returns a server that does nothing yet.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		options: o, engine: o.Engine, memory: &batchmem.Memory{Limit: o.NodeBytes},
		streams: lifecycle.NewStreams(), closing: make(chan struct{}), replays: make(chan struct{}, o.Replays),
	}
	s.roots = rootsOf(&s.options)
	s.shared = dedup.New(o.ShareBytes)
	s.runs.Weight = s.options.Access.WeightOf
	s.demand = demand.NewMeter(s.engine, &s.book, &s.runs)
	s.finder = snapshots.New(snapshots.Options{
		Tables: tablesOf(&o), Scanner: o.Engine, Storage: s.roots, Roots: o.Roots, LinksBeneath: o.LinksBeneath, AnyPath: o.AnyPath, Idle: o.SnapshotIdle,
		OnScan: func(took time.Duration) { s.metrics.CountScan(took) },
	})
	s.count()
	s.misread = admission.NewSampledLog(o.Log)
	s.waits = admission.NewSampledLog(o.Log)
	s.audit = audit.New(o.Audit)
	s.guard = admission.New(admission.Options{
		Access: o.Access, TLS: o.TLS, HostConnections: o.HostConnections, Connections: o.Connections, HostShare: o.HostShare,
		HelloTimeout: o.HelloTimeout, Memory: s.memory, OnRefusal: s.noteRefusal,
		FailedHandshakes: s.metrics.FailedHandshakes, RefusedConnections: s.metrics.RefusedConnections, Log: o.Log,
	})
	s.jobs = &jobBinder{
		guard: s.guard, finder: s.finder, engine: s.engine, runs: &s.runs, shared: s.shared, tracer: o.Tracer, build: o.Build,
	}
	return s
}

// count has the node's doings counted, and told to who watches it.
func (s *Server) count() {
	o := &s.options
	sources := metrics.Sources{
		Engine: s.engine, Memory: s.memory, Streams: s.streams, Finder: s.finder, Demand: s.demand, Storage: s.roots, Roots: o.Roots, ReadCache: o.ReadCache, Pixels: o.Pixels, Index: o.Index,
		Version: o.Version, Build: o.Build,
	}
	s.load = metrics.NewLoad(sources)
	s.source = watch.New(watch.Options{
		Kind: "node", Version: o.Build, Cores: float64(s.engine.Workers()), Registry: &s.book, Wanted: s.demand.JobNodes, Nodes: s.load.Follow,
	})
	sources.Jobs = s.source
	s.metrics = metrics.New(sources)
}

// noteRefusal notes a call that was turned away.
func (s *Server) noteRefusal(c *admission.Caller, method string, err error) {
	code := judge(err).code
	s.metrics.CountRefusal(code)
	s.audit.WriteRefusal(c, method, code, err)
}

// Register offers the node at a gRPC server, which has to be made with GRPCOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) { pb.RegisterFeedServer(r, s) }

const (
	writeBuffer  = 256 << 10 // fewer, larger writes, which still lie in the cache when they are encrypted
	maxRequest   = 4 << 20   // a list of half a million samples
	maxHeaders   = 16 << 10  // bytes
	maxRPCs      = 256       // at once on one connection
	maxHandshake = 20 * time.Second
	maxIdle      = 5 * time.Minute // of a connection without calls
)

// GRPCOptions are the options that a gRPC server of nodes has to be made with. Nothing here ends long streams: no
// maximum age of connections. Both flow control windows follow gRPC's estimate of the link; setting one would leave the
// other at 64 KiB.
func (s *Server) GRPCOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(batchmem.NewCodec()),
		grpc.WriteBufferSize(s.writeBufferSize()),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxRPCs),
		grpc.ConnectionTimeout(maxHandshake),
		grpc.Creds(s.guard.Credentials()),
		grpc.InTapHandle(s.authorize),
		grpc.ChainUnaryInterceptor(admission.InterceptUnary),
		grpc.ChainStreamInterceptor(admission.InterceptStream),
		// Trainers ping every 10 s, also between epochs. Half of that keeps a ping that was held up from being a
		// strike.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		// A trainer written in Python may not answer while it holds the interpreter's lock.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingEvery, Timeout: admission.PingTimeout, MaxConnectionIdle: maxIdle}),
	}
}

// authorize is called for each call when its headers have come. It must not wait.
func (s *Server) authorize(ctx context.Context, info *tap.Info) (context.Context, error) {
	ctx, err := s.guard.Authorize(ctx, info)
	return ctx, toStatus(err)
}

// Listener is l for a gRPC server of nodes: a flood of connections to it costs less than one to l itself.
func (s *Server) Listener(l net.Listener) net.Listener { return s.guard.LimitListener(l) }

// Watchers is h for those alone who may call Watch; others are answered 401, 403 or 429. See Guard.ServeWatchers.
func (s *Server) Watchers(h http.Handler) http.Handler { return s.guard.ServeWatchers(h) }

// writeBufferSize is how many bytes gRPC gathers before it writes. Plaintext connections gather themselves.
func (s *Server) writeBufferSize() int {
	if s.options.TLS != nil {
		return writeBuffer
	}
	return 0
}

// lastWords is how long Stop waits, once all streams are over, for calls of other services, which may have no end.
const lastWords = 5 * time.Second

// Stop ends the node in order: it drains, lets the gRPC server deliver what is on its way, and stops it. When ctx ends
// before, it breaks off and returns ctx's error; trainers then fetch elsewhere what they did not get.
func (s *Server) Stop(ctx context.Context, g *grpc.Server) error {
	err := s.Drain(ctx)
	if err == nil {
		err = s.streams.WaitReturned(ctx) // gRPC has written all that streams lent to it, or has lost it
	}
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	broken := make(chan struct{})
	calm := context.AfterFunc(ctx, func() {
		defer close(broken)
		g.Stop()
	})
	g.GracefulStop()
	if !calm() {
		<-broken
	}
	return err
}

// Drain tells all trainers that the node goes, takes no more wants, lets streams finish what they hold, and returns
// when all have ended or ctx does. What they sent last may still be on its way; Stop waits for that too.
func (s *Server) Drain(ctx context.Context) error {
	s.beginDrain()
	return s.streams.WaitDrained(ctx)
}

func (s *Server) beginDrain() {
	if s.streams.BeginDrain() {
		s.options.OnDrain()
	}
}

// Close ends all scans, waits until nothing of the server runs any more, and closes the snapshots. The gRPC server has
// to be stopped before, and the pipeline closed after.
func (s *Server) Close() {
	s.beginDrain()
	s.close.Do(func() { close(s.closing) })
	_ = s.streams.WaitReturned(context.Background()) // which never ends
	s.watching.Wait()
	s.finder.Close()
	s.memory.TrimFree()
	if _, engines := s.engine.(Storer); !engines {
		s.roots.Close()
	}
}

// Storage tells how the roots' storage is, by their names; folders that have no name are named by their path.
func (s *Server) Storage() []bulkhead.State { return s.roots.States() }

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) { s.metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) { s.metrics.Collect(ch) }

// Source is what there is to watch of this node.
func (s *Server) Source() *watch.Source { return s.source }
