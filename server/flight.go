package server

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// flights have equal batches made once, for whatever streams want them. Who asks first has it made, in his memory and on his account; who
// asks meanwhile gets a copy, and so does who asks later, for as long as it is kept. Nobody waits for somebody less urgent, and failures
// are shared with nobody: who waited for one is made his own batch.
type flights struct {
	mu   sync.Mutex
	all  map[flightKey]*flight
	kept shelf
}

// flightKey is a batch's name, and the data and plan that it is a name of.
type flightKey struct {
	data  *snapshot
	masks *snapshot // nil: none
	plan  string
	name  string // the message, as bytes
}

// flight is a batch in the making.
type flight struct {
	key     flightKey
	due     time.Time
	waiting []*passenger
}

// passenger is a want that waits for the batch of another.
type passenger struct {
	job  *Job
	want *Want
	name pipeline.Name
}

// newFlights shares batches, and keeps bytes of those that were made; nil, which shares nothing, where that is 0.
func newFlights(bytes int64) *flights {
	if bytes <= 0 {
		return nil
	}
	return &flights{all: map[flightKey]*flight{}, kept: shelf{limit: bytes, all: map[flightKey]*list.Element{}}}
}

// lateness is how much later than a want the one may be due whose batch it waits for. Jobs that run alike ask within it.
const lateness = 250 * time.Millisecond

// submit is Job.submitName for a want whose batch others may want too; message is its name.
func (l *flights) submit(j *Job, w *Want, name pipeline.Name, message *pb.Name) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if l == nil || err != nil {
		j.submitName(w, name)
		return
	}
	p := &passenger{j, w, name}
	key := flightKey{j.data, j.masks, j.hash, string(text)}
	l.mu.Lock()
	if k := l.kept.take(key); k != nil {
		l.mu.Unlock()
		l.serve(p, &Made{Header: k.header, Data: k.data})
		return
	}
	if f := l.all[key]; f != nil && !f.due.After(w.Due.Add(lateness)) {
		w.flight = f
		f.waiting = append(f.waiting, p)
		l.mu.Unlock()
		return
	}
	l.begin(key, p, nil)
}

// begin has p make the batch for itself and others. It is called with mu held, and gives it back.
func (l *flights) begin(key flightKey, p *passenger, others []*passenger) {
	f := &flight{key: key, due: p.want.Due, waiting: others}
	for _, o := range others {
		o.want.flight = f
	}
	l.all[key] = f
	l.mu.Unlock()
	done := p.want.Done
	p.want.Done = func(m Made) {
		l.land(f, &m)
		done(m)
	}
	l.board(p)
}

// board submits a want. One that is cancelled meanwhile is cancelled when the pipeline has it.
func (l *flights) board(p *passenger) {
	p.job.submitName(p.want, p.name)
	l.mu.Lock()
	p.want.boarding = false
	cancelled := p.want.cancelled
	l.mu.Unlock()
	if cancelled {
		p.job.maker.Cancel(&p.want.inner)
	}
}

// land gives a batch to all who wait for it, while it is still there. If there is none, the first of them has it made.
func (l *flights) land(f *flight, m *Made) {
	l.mu.Lock()
	if l.all[f.key] == f {
		delete(l.all, f.key)
	}
	waiting := f.waiting
	f.waiting = nil
	for _, p := range waiting {
		p.want.flight, p.want.boarding = nil, true
	}
	if m.Failure != nil && len(waiting) > 0 {
		l.begin(f.key, waiting[0], waiting[1:])
		return
	}
	l.mu.Unlock()
	if m.Failure != nil {
		return
	}
	for _, p := range waiting {
		l.serve(p, m)
	}
	l.keep(f.key, m)
}

// serve copies a batch that another want had made, or has it made again where the copy would find no room.
func (l *flights) serve(p *passenger, m *Made) {
	w, data := p.want, p.want.Dst
	if len(data) < len(m.Data) && w.Grow != nil {
		data = w.Grow(len(m.Data))
	}
	if len(data) < len(m.Data) {
		l.board(p)
		return
	}
	header, _ := proto.Clone(m.Header).(*pb.Header)
	header.CoreSeconds, header.QueuedSeconds = 0, 0
	p.job.stake.made(0, p.name.Len())
	w.Done(Made{Header: header, Data: data[:copy(data, m.Data)], Shared: true})
}

// cancel takes a want out of the flight that it waits for; false where the pipeline has it.
func (l *flights) cancel(w *Want) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	f := w.flight
	if f == nil {
		defer l.mu.Unlock()
		w.cancelled = w.boarding
		return w.boarding
	}
	f.waiting = slices.DeleteFunc(f.waiting, func(p *passenger) bool { return p.want == w })
	w.flight = nil
	l.mu.Unlock()
	w.Done(Made{Failure: toFailure(pipeline.ErrCancelled), Err: pipeline.ErrCancelled})
	return true
}

// keep puts a copy of a batch on the shelf.
func (l *flights) keep(key flightKey, m *Made) {
	if int64(len(m.Data)) > l.kept.limit {
		return
	}
	k := &kept{key: key, header: m.Header, data: slices.Clone(m.Data)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.put(k)
}
