// Package local makes this process's own pipeline a node of a fleet: without any wire, without copies, with images
// handed over as they are made.
package local

import (
	"log/slog"
	"runtime"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/tables"
)

// Options of Pipelines.
type Options struct {
	// Lists says where lists of files are kept.
	Lists dataset.Options
	// Tables are the lists that trainers give; nil: none are taken.
	Tables *tables.Store
	// Progress, if set, is told of each scan how many files it has found so far, now and then.
	Progress func(files int)
	// Index is that of files; nil: none.
	Index *pipeline.IndexOptions
	// Pixels keeps decoded pictures of all pipelines; nil: none are kept. Who made it closes it after them.
	Pixels *pixelcache.Cache
	// OnPanic, if set, is told of panics on samples, whose wants end with the error.
	OnPanic func(*pipeline.PanicError)
	// Version and Build of this program.
	Version, Build string
	// Tracer makes spans; nil: there are none.
	Tracer trace.Tracer
	// Log is told of what the pipelines' servers do.
	Log *slog.Logger
}

// Pipelines are those of this process, one per number of workers, made when the first Loader needs it. They may be used
// from many goroutines.
type Pipelines struct {
	options Options

	rootsMade sync.Once
	roots     *bulkhead.Roots // see Storage

	mu      sync.Mutex
	servers map[int]*pipelineServer
}

// pipelineServer is a server, and the pipeline that it does not close.
type pipelineServer struct {
	*server.Server
	pipeline *pipeline.Pipeline
}

// New returns Pipelines of which none is made yet. Close ends them.
func New(o Options) *Pipelines { return &Pipelines{options: o, servers: map[int]*pipelineServer{}} }

// Storage are the roots of all folders that Loaders read.
func (p *Pipelines) Storage() *bulkhead.Roots {
	p.rootsMade.Do(func() { p.roots = bulkhead.New(bulkhead.Options{Places: 3 * runtime.GOMAXPROCS(0)}) })
	return p.roots
}

// Node is the pipeline with that many workers as a node. plan is what this machine has to read in place of the fleet's
// plan, where that names the data otherwise; empty: the fleet's own.
func (p *Pipelines) Node(workers int, plan string) (*Node, error) {
	s, err := p.openServer(workers)
	if err != nil {
		return nil, err
	}
	return &Node{server: s.Server, plan: plan}, nil
}

// openServer returns the server of a pipeline with that many workers.
func (p *Pipelines) openServer(workers int) (*pipelineServer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.servers[workers]; s != nil {
		return s, nil
	}
	o := &p.options
	own, err := pipeline.Open(pipeline.Options{Workers: workers, OnPanic: o.OnPanic, Index: o.Index, Pixels: o.Pixels, Storage: p.Storage()})
	if err != nil {
		return nil, err
	}
	lists := o.Lists
	lists.Progress = o.Progress
	s := &pipelineServer{pipeline: own, Server: server.New(server.Options{
		Engine: server.NewEngine(own, lists), AnyPath: true, Tables: o.Tables, Version: o.Version, Build: o.Build, Tracer: o.Tracer, Log: o.Log,
	})}
	p.servers[workers] = s
	return s, nil
}

// Close ends all pipelines. No fleet uses them any more.
func (p *Pipelines) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		s.Close()
		s.pipeline.Close()
	}
	p.Storage().Close()
}
