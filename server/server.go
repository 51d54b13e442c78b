// Package server is a node: it offers a pipeline's batches over gRPC as proto/feedwater/v1 says. It finds the data that plans
// name and shares each snapshot among all who use it, lends slots within a budget, sends batches by reference to them, and turns
// errors into codes. It makes no pixels itself, keeps nothing of a trainer beyond its stream, and listens nowhere: that is the
// caller's part.
//
// Goroutines: each Fetch stream has its handler, one goroutine that receives, one that sends, and after its end one that waits
// until everything lent to it is back; each scan of a folder has one. Close waits for all of them.
package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/tap"

	"github.com/feedwater-io/feedwater/pipeline/storage"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/server/dedup"
	"github.com/feedwater-io/feedwater/server/demand"
	"github.com/feedwater-io/feedwater/server/lifecycle"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/server/tables"
	"github.com/feedwater-io/feedwater/watch"
	"github.com/feedwater-io/feedwater/watch/pulse"
)

// Options of a Server. Engine is required; the zero value of all others works.
type Options struct {
	Engine Engine
	// Roots are the folders that plans may name, by name.
	Roots map[string]string
	// Tables keeps the lists that trainers give; nil: none are taken. It is not closed by the server.
	Tables *tables.Store
	// LinksBeneath refuses links that lead out of their root, when a folder is listed and when a file is read.
	LinksBeneath bool
	// AnyPath lets plans without a root name any absolute path: for a node within the process that asks.
	AnyPath bool
	// NodeBytes is the memory for batches, all streams together. Default 4 GiB.
	NodeBytes int64
	// StreamBytes is what one stream may take of it, and so the largest batch. Default a quarter of NodeBytes.
	StreamBytes int64
	// ShareBytes, if set, has equal batches that jobs want made once: it is the memory for those that are kept for jobs that come later,
	// besides NodeBytes.
	ShareBytes int64
	// StreamWants is how many wants one stream may hold. Default 1024.
	StreamWants int
	// SnapshotIdle is how long a snapshot is kept that nobody uses. Default 10 min.
	SnapshotIdle time.Duration
	// StallTimeout ends a stream that takes no data for so long while there is some. Default 60 s.
	StallTimeout time.Duration
	// ReplaySamples and ReplayBytes bound one answer of Replay. Default 4096 samples and 32 MiB of pixels.
	ReplaySamples int
	ReplayBytes   int
	// Replays is how many are answered at once; further ones wait their turn. Default 4.
	Replays int
	// TLS of connections; nil: plaintext. TLSFiles makes one.
	TLS *tls.Config
	// HostConnections and Connections are how many are open at once, from one address and together. Default 256 and 4096.
	HostConnections, Connections int
	// HostShare is how much of one core each address may take for its connections, handshakes and requests, whether they are let in or not; all
	// that it may have open can begin at once. Connections beyond are closed, requests wait. Default 0.05: 25 connections, 600 calls or 2.5 MB
	// of requests a second.
	HostShare float64
	// Access says who may ask for what.
	Access admission.Access
	// HelloTimeout ends a call whose first message does not come for so long. Default 20 s.
	HelloTimeout time.Duration
	// Audit, if set, is told of each job when its last stream here ends, and of calls that were turned away. It must not block for long.
	Audit func(AuditLine)
	// Version is told to trainers, and so is Build, which tells one build from another for people. Default of Build: Version.
	Version, Build string
	// Protocol is the latest revision of the contract that the node speaks, OldestProtocol the earliest that it serves. 0: those of this
	// version.
	Protocol, OldestProtocol uint32
	// Tracer makes spans of wants whose trainers trace them; nil: there are none. docs/tracing.md.
	Tracer trace.Tracer
	// OnDrain, if set, is called once when Drain begins: the place to stop being announced as healthy.
	OnDrain func()
	// OnRoot, if set, is told when the storage of a root answers no more, and when it does again. It must not block.
	OnRoot func(root string, answers bool)
	// Log is told of streams that end badly. Default: nobody is.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Build == "" {
		o.Build = o.Version
	}
	if o.Protocol == 0 {
		o.Protocol = pb.Protocol
	}
	if o.OldestProtocol == 0 {
		o.OldestProtocol = pb.OldestProtocol
	}
	if o.NodeBytes <= 0 {
		o.NodeBytes = 4 << 30
	}
	if o.StreamBytes <= 0 {
		o.StreamBytes = o.NodeBytes / 4
	}
	if o.StreamWants <= 0 {
		o.StreamWants = 1024
	}
	if o.SnapshotIdle <= 0 {
		o.SnapshotIdle = 10 * time.Minute
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = time.Minute
	}
	if o.ReplaySamples <= 0 {
		o.ReplaySamples = 4096
	}
	if o.ReplayBytes <= 0 {
		o.ReplayBytes = 32 << 20
	}
	if o.Replays <= 0 {
		o.Replays = 4
	}
	if o.OnDrain == nil {
		o.OnDrain = func() {}
	}
	if o.OnRoot == nil {
		o.OnRoot = func(string, bool) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is a node. Its methods may be called from many goroutines at once; those that take and give messages of
// feedwater.proto work without a wire too.
type Server struct {
	pb.UnimplementedFeedServer
	options Options
	engine  Engine
	finder  *snapshots.Finder
	plans   *planBinder
	memory  *batchmem.Memory
	metrics *metrics
	streams *lifecycle.Streams
	close   sync.Once
	closing chan struct{} // closed by Close
	replays chan struct{} // holds one element per Replay that is being answered
	garbage batchmem.Collector
	guard   *admission.Guard
	audit   *audit
	book    pulse.Registry
	shares  runs.Registry
	shared  *dedup.Group
	demand  *demand.Meter
	load    load
	misread *admission.SampledLog // what it could not read
	roots   *storage.Roots
	source  *watch.Source

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
	s.shares.Weight = s.options.Access.WeightOf
	s.demand = demand.NewMeter(s.engine, &s.book, &s.shares)
	s.source = newSource(s)
	s.metrics = newMetrics(s)
	s.misread = admission.NewSampledLog(o.Log)
	s.finder = snapshots.New(snapshots.Options{
		Tables: tablesOf(&o), Scanner: o.Engine, Storage: s.roots, Roots: o.Roots, LinksBeneath: o.LinksBeneath, AnyPath: o.AnyPath, Idle: o.SnapshotIdle,
		OnScan: s.metrics.countScan,
	})
	s.audit = newAudit(o.Audit, s.metrics)
	s.guard = admission.New(admission.Options{
		Access: o.Access, TLS: o.TLS, HostConnections: o.HostConnections, Connections: o.Connections, HostShare: o.HostShare,
		HelloTimeout: o.HelloTimeout, Memory: s.memory, OnRefusal: s.audit.writeRefusal,
		FailedHandshakes: s.metrics.handshakes, RefusedConnections: s.metrics.unplaced, Log: o.Log,
	})
	s.plans = &planBinder{s.guard, s.finder, s.engine, o.Build}
	return s
}

// tablesOf are the tables of options; nil: there are none.
func tablesOf(o *Options) snapshots.Tables {
	if o.Tables == nil {
		return nil
	}
	return o.Tables
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

// GRPCOptions are the options that a gRPC server of nodes has to be made with. Nothing here ends long streams: no maximum age of
// connections. Both flow control windows follow gRPC's estimate of the link; setting one would leave the other at 64 KiB.
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
		// Trainers ping every 10 s, also between epochs. Half of that keeps a ping that was held up from being a strike.
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

// Stop ends the node in order: it drains, lets the gRPC server deliver what is on its way, and stops it. When ctx ends before, it
// breaks off and returns ctx's error; trainers then fetch elsewhere what they did not get.
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

// Drain tells all trainers that the node goes, takes no more wants, lets streams finish what they hold, and returns when all have
// ended or ctx does. What they sent last may still be on its way; Stop waits for that too.
func (s *Server) Drain(ctx context.Context) error {
	s.beginDrain()
	return s.streams.WaitDrained(ctx)
}

func (s *Server) beginDrain() {
	if s.streams.BeginDrain() {
		s.options.OnDrain()
	}
}

// Close ends all scans, waits until nothing of the server runs any more, and closes the snapshots. The gRPC server has to be
// stopped before, and the pipeline closed after.
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

// errDraining says that a node takes no more work.
var errDraining = snapshots.ErrClosed
