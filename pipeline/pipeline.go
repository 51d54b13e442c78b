// Package pipeline turns the name of a plan's batch into pixels. A Pipeline owns a fixed set of worker goroutines that
// serve all jobs of a process sample by sample; a Job is a plan bound to a snapshot; a Want asks for one batch,
// straight into memory that the caller lends. It knows nothing of trainers, positions, networks or protocols, and the
// bytes it makes depend on plan, name, revisions and numerics alone.
package pipeline

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/feedwater-io/feedwater/control"
	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/internal/kernel"
	"github.com/feedwater-io/feedwater/pipeline/pixelcache"
	"github.com/feedwater-io/feedwater/pipeline/revision"
)

// Options of a Pipeline. The zero value uses all cores.
type Options struct {
	// Workers is how many samples are decoded at once. 0: one per core this process may use.
	Workers int
	// Readers is how many files are read ahead of the workers, so that cores do not idle while storage is slow. 0:
	// twice Workers.
	Readers int
	// Kernels forces a level of package kernel, "avx512", "avx2" or "scalar". Empty: FEEDWATER_KERNELS, else the best of this
	// processor.
	Kernels string
	// OnPanic, if set, is told of panics in the code that makes samples, from any worker; the sample's want then ends
	// with the error. Nil: a panic ends the process, as tests want it.
	OnPanic func(*PanicError)
	// Index, if set, keeps indexes of pictures, so that what lies outside their crops is skipped.
	Index *IndexOptions
	// ReadTimeout is how long reading a file may take, or opening a folder since it last went on, until it fails and
	// the storage that it lies on is held to be sick: see package bulkhead. 0: bulkhead.DefaultDeadline.
	ReadTimeout time.Duration
	// Storage are the roots that files lie in; nil: some of the pipeline's own. Where several share them, the first
	// pipeline to be closed hurries the calls of all.
	Storage *bulkhead.Roots
	// Revisions, if set, are said to be this build's, so that tests can stage another build.
	Revisions revision.Set

	// ReadAhead is how many bytes of files are read at most before workers need them, of storage that takes many reads
	// at once, as buckets. Default 256 MiB; negative: none are.
	ReadAhead int64
	// Pixels keeps decoded pictures; nil: none are kept. Several pipelines may share it, and who made it closes it after
	// them.
	Pixels *pixelcache.Cache
	// TestNode is empty but in builds of tag testnode.
	TestNode TestNode

	read readFunc // tests let storage hang here
}

func (o *Options) setDefaults() error {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Readers <= 0 {
		o.Readers = 2 * o.Workers
	}
	if o.ReadAhead == 0 {
		o.ReadAhead = 256 << 20
	}
	if o.read == nil {
		o.read = readNow
	}
	if o.Kernels == "" {
		var err error
		if o.Kernels, err = kernel.Best(); err != nil {
			return err
		}
	}
	if o.Revisions == nil {
		o.Revisions = revision.Build()
	}
	return kernel.Check(o.Kernels)
}

// Pipeline is a set of workers. Its methods may be used by many callers at once.
type Pipeline struct {
	options  Options
	numerics string
	indexes  indexStores
	queue    queue
	ahead    readAhead
	decoders chan *decoder // of idle decoders; having one is the right to use a core
	workers  workerCount
	roots    *bulkhead.Roots
	cost     atomic.Uint64 // bits of a control.SampleCost
	spending spending
	credit   decodingCredit  // for pictures that are decoded to be kept
	context  context.Context // of reads; ended when no worker is left that waits for one
	stop     context.CancelFunc
}

// Open measures this machine's numerics, which is done once in a process, and starts the workers.
func Open(o Options) (*Pipeline, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	p := &Pipeline{options: o, decoders: make(chan *decoder, o.Workers)}
	p.context, p.stop = context.WithCancel(context.Background())
	p.workers.change.L = &p.workers.mu
	p.ahead.p, p.ahead.budget, p.ahead.lines = p, o.ReadAhead, map[*bulkhead.Root]*aLine{}
	p.roots = o.Storage
	if p.roots == nil {
		p.roots = bulkhead.New(bulkhead.Options{Places: o.Workers + o.Readers, Deadline: o.ReadTimeout})
	}
	p.roots.OnFree(p.queue.wakeWorkers)
	if o.Index != nil {
		p.indexes.keepIn(o.Index.withDefaults(), o.Revisions, p.roots)
	}
	p.queue.init(o.Workers)
	for range o.Workers {
		p.decoders <- newDecoder(o.Kernels)
	}
	digest, err := recallNumerics(o.Kernels, o.TestNode.salt())
	if err != nil {
		return nil, err
	}
	p.numerics = nameNumerics(digest)
	for range o.Workers + o.Readers {
		p.addWorker()
	}
	return p, nil
}

// Close ends the workers after the samples they are at, then ends every want that is left with ErrClosed, and returns
// when all of that is done. Calls that storage does not give back within two seconds are given up.
func (p *Pipeline) Close() {
	rest := p.queue.closeQueue()
	p.roots.Hurry()
	p.waitForWorkers()
	p.stop()
	for _, w := range rest {
		w.assembly.setFailure(0, ErrClosed)
		w.finishSamples(w.Name.Len() - w.entry.Begun())
	}
	p.ahead.running.Wait()
	p.indexes.closeStores()
	if p.options.Storage == nil {
		p.roots.Close()
	}
}

// Storage are the roots that files are read from.
func (p *Pipeline) Storage() *bulkhead.Roots { return p.roots }

// Numerics is what the start-up self-test of all pixel code found on this machine: same numerics and revisions, same
// bytes. It is Exact where the machine computes what this build was committed with, and else a digest of what it
// computes.
func (p *Pipeline) Numerics() string { return p.numerics }

// Revisions are the units of this build. Not to be changed.
func (p *Pipeline) Revisions() revision.Set { return p.options.Revisions }

// Kernels is the level in use.
func (p *Pipeline) Kernels() string { return p.options.Kernels }

// Workers is how many samples are decoded at once.
func (p *Pipeline) Workers() int { return p.options.Workers }

// Queued estimates the core-seconds of work that is queued.
func (p *Pipeline) Queued() float64 {
	return float64(p.queue.countWaiting()) * math.Float64frombits(p.cost.Load())
}

// Ahead estimates the core-seconds of work before a further want of an account.
func (p *Pipeline) Ahead(a *share.Account) float64 { return p.queue.workAhead(a) }

// countSpent counts what a sample cost into the moving average. Lost updates do no harm.
func (p *Pipeline) countSpent(d time.Duration) {
	const weight = 1.0 / 64
	p.spending.making.Add(int64(d))
	p.spending.samples.Add(1)
	if p.options.Pixels != nil {
		p.credit.addBusy(d, p.options.Workers, time.Now())
	}
	cost := control.SampleCost(math.Float64frombits(p.cost.Load()))
	cost.AddBatch(d.Seconds(), 1, weight)
	p.cost.Store(math.Float64bits(float64(cost)))
}
