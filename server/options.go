package server

import (
	"crypto/tls"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset/readcache"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/audit"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/server/tables"
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
	// ShareBytes, if set, has equal batches that jobs want made once: it is the memory for those that are kept for jobs
	// that come later, besides NodeBytes.
	ShareBytes int64
	// StreamWants is how many wants one stream may hold. Default 1024.
	StreamWants int
	// ReadCache, if set, is the engine's; its counts are told. It is not closed by the server.
	ReadCache *readcache.Cache
	// Pixels, if set, are the engine's; their counts are told. They are not closed by the server.
	Pixels *pixelcache.Cache
	// Index, if set, is the engine's; it is told.
	Index *pipeline.IndexCounts
	// SnapshotIdle is how long a snapshot is kept that nobody uses. Default 10 min.
	SnapshotIdle time.Duration
	// StallTimeout ends a stream that takes no data for so long while there is some. Default 60 s.
	StallTimeout time.Duration
	// ReplaySamples and ReplayBytes bound one answer of Replay. Default 4096 samples and 60 MiB of pixels,
	// which is a picture of 20 megapixels, and what a client takes.
	ReplaySamples int
	ReplayBytes   int
	// Replays is how many are answered at once; further ones wait their turn. Default 4.
	Replays int
	// TLS of connections; nil: plaintext. TLSFiles makes one.
	TLS *tls.Config
	// HostConnections and Connections are how many are open at once, from one address and together. Default 256
	// and 4096.
	HostConnections, Connections int
	// HostShare is how much of one core each address may take for its connections, handshakes and requests, whether
	// they are let in or not; all that it may have open can begin at once. Connections beyond are closed, requests
	// wait. Default 0.05: 25 connections, 600 calls or 2.5 MB of requests a second.
	HostShare float64
	// Access says who may ask for what.
	Access admission.Access
	// HelloTimeout ends a call whose first message does not come for so long. Default 20 s.
	HelloTimeout time.Duration
	// Audit, if set, is told of each job when its last stream here ends, and of calls that were turned away. It must
	// not block for long.
	Audit func(audit.Line)
	// Version is told to trainers, and so is Build, which tells one build from another for people. Default of Build:
	// Version.
	Version, Build string
	// Protocol is the latest revision of the contract that the node speaks, OldestProtocol the earliest that it serves.
	// 0: those of this version.
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
		o.ReplayBytes = 60 << 20
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

// tablesOf are the tables of options; nil: there are none.
func tablesOf(o *Options) snapshots.Tables {
	if o.Tables == nil {
		return nil
	}
	return o.Tables
}

// rootsOf are the roots that an engine reads from, and the node's.
func rootsOf(o *Options) *bulkhead.Roots {
	roots := bulkhead.New(bulkhead.Options{})
	if e, ok := o.Engine.(Storer); ok {
		roots = e.Storage()
	}
	for name, folder := range o.Roots {
		roots.Add(name, folder)
	}
	roots.OnChange(func(r bulkhead.State) {
		if r.Sick {
			o.Log.Warn("the storage of a root does not answer: its wants are made elsewhere until it does, other roots go on", "root", r.Name, "folder", r.Folder, "err", pipeline.WithTrouble(r.Folder, r.Cause))
		} else {
			o.Log.Info("the storage of a root answers again", "root", r.Name, "folder", r.Folder, "for", time.Since(r.Since).Round(time.Millisecond))
		}
		if _, named := o.Roots[r.Name]; named {
			o.OnRoot(r.Name, !r.Sick)
		}
	})
	return roots
}
