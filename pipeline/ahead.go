package pipeline

import (
	"context"
	"sync"

	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
)

// readAhead reads files of queued wants before workers need them, from storage that answers many reads at once with
// profit: see dataset.Snapshot.Ahead. Reads of a root begin in the order in which their wants are due. What was read
// and is not used yet takes no more than a budget of bytes; reads in flight may pass it. Each root has as many
// goroutines as it takes reads, which end when there is nothing to read.
type readAhead struct {
	p       *Pipeline
	budget  int64
	running sync.WaitGroup

	mu    sync.Mutex
	used  int64                     // bytes that are read, or were and are not used
	lines map[*bulkhead.Root]*aLine // with wants or readers
	spare sync.Pool                 // *[]byte
}

// aLine is what is to be read from one root.
type aLine struct {
	wants   []*wantAhead
	readers int
}

// wantAhead is what is read ahead for one want. It is guarded by readAhead.mu.
type wantAhead struct {
	want    *Want
	ctx     context.Context //nolint:containedctx // of the want's reads
	cancel  context.CancelFunc
	reads   []fileAhead
	next    int          // the first read that may not have begun
	joins   *arrangement // nil: not looked for yet, or each is read alone
	dropped bool
}

// fileAhead is the read of one sample's file.
type fileAhead struct {
	state   aheadState
	claimed bool // a worker waits for it
	index   int
	size    int64
	data    []byte
	err     error
	ended   chan struct{}
}

type aheadState uint8

const (
	aheadWaiting aheadState = iota
	aheadReading
	aheadDone
	aheadGone // used, dropped, or left to a worker
)

// plan readies a want's reads; nil: none of them is read ahead.
func (a *readAhead) plan(w *Want) *wantAhead {
	if w.job.ahead == 0 || !w.job.readsFiles() || w.replay != nil || a.budget <= 0 {
		return nil
	}
	q := &wantAhead{want: w, reads: make([]fileAhead, w.Name.Len())}
	q.ctx, q.cancel = context.WithCancel(a.p.context)
	return q
}

// begin reads for a want that is queued.
func (a *readAhead) begin(q *wantAhead) {
	if q == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	root := q.want.job.root
	if q.dropped || root.Sick() {
		return
	}
	l := a.lines[root]
	if l == nil {
		l = &aLine{}
		a.lines[root] = l
	}
	l.wants = append(l.wants, q)
	a.staff(root, l)
}

// staff starts readers while there is something for them. mu is held.
func (a *readAhead) staff(root *bulkhead.Root, l *aLine) {
	if a.p.context.Err() != nil {
		return
	}
	for _, q := range l.wants {
		for n := len(q.reads) - q.next; n > 0 && l.readers < q.want.job.ahead && a.used < a.budget; n-- {
			l.readers++
			a.running.Go(func() { a.read(root, l) })
		}
	}
}

// read is a reader.
func (a *readAhead) read(root *bulkhead.Root, l *aLine) {
	for {
		q, run := a.pick(root, l)
		switch {
		case q == nil:
			return
		case len(run) > 1:
			a.readRun(q, run)
			continue
		}
		f := run[0]
		data, err := a.p.options.read(q.ctx, q.want.job.snapshot, root.Generation(), f.index, nil, a.room())
		a.finish(q, f, data, err)
	}
}

// room is a buffer for a read.
func (a *readAhead) room() []byte {
	if room, _ := a.spare.Get().(*[]byte); room != nil {
		return *room
	}
	return nil
}

// pick is the next read of a root, of the want that is due first, and those that are worth one question with it. None: the reader has ended.
func (a *readAhead) pick(root *bulkhead.Root, l *aLine) (*wantAhead, []*fileAhead) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.used < a.budget && !root.Sick() {
		q := l.first()
		if q == nil {
			break
		}
		at := q.next
		q.next++
		if q.reads[at].state != aheadWaiting {
			continue
		}
		if run := a.pickRun(q, at); len(run) > 0 {
			return q, run
		}
	}
	if l.readers--; l.readers == 0 && len(l.wants) == 0 {
		delete(a.lines, root)
	}
	return nil, nil
}

// start begins a read; false: it is left to a worker. mu is held.
func (a *readAhead) start(q *wantAhead, at int) bool {
	f := &q.reads[at]
	f.index = int(q.want.assembly.sampleAt(at).Index)
	var room [512]byte
	s, err := q.want.job.snapshot.At(f.index, room[:])
	if err != nil || q.want.job.plan.Limits.CheckFile(s.Size) != nil {
		f.state = aheadGone // the worker finds out, and says so
		return false
	}
	f.state, f.size, f.ended = aheadReading, s.Size, make(chan struct{})
	a.used += f.size
	return true
}

// first is the want that is due first of those that have reads left; others leave the line.
func (l *aLine) first() (best *wantAhead) {
	kept := l.wants[:0]
	for _, q := range l.wants {
		if q.dropped || q.next == len(q.reads) {
			continue
		}
		kept = append(kept, q)
		if best == nil || q.want.Due.Before(best.want.Due) {
			best = q
		}
	}
	clear(l.wants[len(kept):])
	l.wants = kept
	return best
}

// finish notes what a read brought.
func (a *readAhead) finish(q *wantAhead, f *fileAhead, data []byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.data, f.err, f.state = data, err, aheadDone
	close(f.ended)
	if q.dropped && !f.claimed {
		a.release(f)
	}
}

// release ends a read whose bytes are not here any more. mu is held.
func (a *readAhead) release(f *fileAhead) {
	a.keep(f.data)
	f.state, f.data = aheadGone, nil
	a.used -= f.size
}

// keep keeps a buffer for another read.
func (a *readAhead) keep(b []byte) {
	if cap(b) > 0 && cap(b) <= keptBytes {
		b = b[:0]
		a.spare.Put(&b)
	}
}

// claim is the read of sample at of a want, if that was begun for the file i of this snapshot; else a worker reads it.
func (a *readAhead) claim(w *Want, at int, s *dataset.Snapshot, i int) *fileAhead {
	q := w.ahead
	if q == nil || s != w.job.snapshot {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &q.reads[at]
	if f.state == aheadWaiting {
		f.state = aheadGone
	}
	if f.state == aheadGone || f.claimed || f.index != i {
		return nil
	}
	f.claimed = true
	return f
}

// take waits for a read that was claimed, and gives buf for what it brought. The error is errAlone where it is to be read alone.
func (a *readAhead) take(w *Want, f *fileAhead, buf []byte) ([]byte, error) {
	<-f.ended
	a.mu.Lock()
	defer a.mu.Unlock()
	data, err := f.data, f.err
	f.data = nil
	if err != nil {
		a.keep(data)
		data = buf
	} else {
		a.keep(buf)
	}
	a.release(f)
	if root := w.job.root; a.lines[root] != nil {
		a.staff(root, a.lines[root])
	}
	return data, err
}

// drop ends the reads of a want that has ended or was cancelled.
func (a *readAhead) drop(q *wantAhead) {
	if q == nil {
		return
	}
	q.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.dropped {
		return
	}
	q.dropped = true
	for i := range q.reads {
		switch f := &q.reads[i]; {
		case f.state == aheadWaiting:
			f.state = aheadGone
		case f.state == aheadDone && !f.claimed:
			a.release(f)
		}
	}
	for root, l := range a.lines {
		a.staff(root, l)
	}
}
