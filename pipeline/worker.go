package pipeline

import (
	"runtime"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// worker takes samples until the queue is closed. Reading files needs no core, so there are more workers than decoders;
// a worker that has read its file waits for a decoder. One whose call storage does not give back is replaced by
// another: see bulkhead.Owner, which it is.
type worker struct {
	p    *Pipeline
	file []byte // that was read last
	call bulkhead.Call

	// What is read, or was last: the file of a sample of a snapshot, or what a store has of one.
	snapshot *dataset.Snapshot
	root     *bulkhead.Root
	store    *records // nil: none is kept
	index    int

	found  []byte    // index of the file
	making recording // where it has none

	pixels pixelKeeping

	// The sample at hand. places are the roots that it holds a place of; who reads on gives them back.
	want    *Want
	at      int
	line    dataset.Sample // of the list, whose key lies in key
	key     [512]byte
	places  []*bulkhead.Root
	surplus bool // another worker was started in its place
	gone    bool // its sample was failed by GaveUp
}

// makeSamples is a worker's goroutine.
func (k *worker) makeSamples() {
	k.call.Owner = k
	for {
		w, first, n, places := k.p.queue.takeSamples()
		if w == nil {
			k.p.removeWorker()
			return
		}
		k.want, k.at, k.places = w, first, places
		if w.cancelled.Load() {
			w.assembly.setFailure(first, ErrCancelled)
		} else {
			w.assembly.noteBegin()
			k.makeSample()
		}
		k.leavePlaces()
		if k.gone {
			k.comeBack()
			return
		}
		w.finishSamples(n)
		k.keepLater()
		if k.surplus {
			k.p.removeWorker()
			return
		}
		if cap(k.file) > keptBytes {
			k.file = nil
		}
	}
}

// keptBytes is the most that a worker or a decoder keeps in any one buffer for the next file.
const keptBytes = 32 << 20

// acquireDecoder waits for a decoder, and tells since when the worker has it.
func (k *worker) acquireDecoder() (d *decoder, begun time.Time) {
	d = <-k.p.decoders
	runtime.Gosched() // workers wake each other, and would keep those who send and receive waiting for 10 ms at every step
	return d, time.Now()
}

// releaseDecoder gives back what acquireDecoder returned. The time between counts as spent on the want at hand.
func (k *worker) releaseDecoder(d *decoder, begun time.Time) {
	k.p.options.TestNode.prolongSample(begun)
	d.releaseFiles()
	spent := time.Since(begun)
	k.p.decoders <- d
	k.want.busy.Add(int64(spent))
	k.p.countSpent(spent)
}

// workerCount counts the workers that Close waits for: not those that storage has not given back and that were given
// up.
type workerCount struct {
	mu     sync.Mutex
	change sync.Cond
	count  int
	closed bool
}

// addWorker starts a worker, unless the pipeline is closed.
func (p *Pipeline) addWorker() {
	p.workers.mu.Lock()
	defer p.workers.mu.Unlock()
	if p.workers.closed {
		return
	}
	p.workers.count++
	go (&worker{p: p}).makeSamples() // Close waits for it, unless storage never gives it back
}

// removeWorker counts a worker out that ends, or that nobody waits for any more.
func (p *Pipeline) removeWorker() {
	p.workers.mu.Lock()
	defer p.workers.mu.Unlock()
	p.workers.count--
	p.workers.change.Broadcast()
}

// waitForWorkers returns when all workers have ended; none begins any more.
func (p *Pipeline) waitForWorkers() {
	p.workers.mu.Lock()
	defer p.workers.mu.Unlock()
	p.workers.closed = true
	for p.workers.count > 0 {
		p.workers.change.Wait()
	}
}
