package server

import (
	"container/list"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// flights have equal batches made once, for whatever streams want them. Who asks first has it made, in his memory; who asks meanwhile
// gets a copy, and so does who asks later, for as long as it is kept. It is made for whichever of them needs it first, on his account, so
// nobody waits for somebody who says that he needs it later. Failures are shared with nobody: who waited for one is made his own batch.
type flights struct {
	mu   sync.Mutex
	all  map[flightKey]*flight
	kept shelf
}

// flightKey is a batch's name, and the data and plan that it is a name of.
type flightKey struct {
	data  *snapshots.Snapshot
	masks *snapshots.Snapshot // nil: none
	plan  string
	name  string // the message, as bytes
}

// flight is a batch in the making.
type flight struct {
	key     flightKey
	maker   *passenger
	urgent  *passenger // of the maker and those who wait, the one whose want is due first
	waiting []*passenger
}

// passenger is a want that waits for the batch of another.
type passenger struct {
	job  *Job
	want *Want
	name batch.Name
}

// newFlights shares batches, and keeps bytes of those that were made; nil, which shares nothing, where that is 0.
func newFlights(bytes int64) *flights {
	if bytes <= 0 {
		return nil
	}
	return &flights{all: map[flightKey]*flight{}, kept: shelf{limit: bytes, all: map[flightKey]*list.Element{}}}
}

// submit is Job.submitName for a want whose batch others may want too; message is its name.
func (l *flights) submit(j *Job, w *Want, name batch.Name, message *pb.Name) {
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
	if f := l.all[key]; f != nil {
		f.join(p)
		l.mu.Unlock()
		return
	}
	l.begin(key, p, nil)
}

// join has p wait for the batch.
func (f *flight) join(p *passenger) {
	p.want.flight = f
	f.waiting = append(f.waiting, p)
	if p.want.Due.Before(f.urgent.want.Due) {
		f.urgent = p
		f.hasten()
	}
}

// hasten has the batch made as soon as it is needed, if it is late by then, once the pipeline has it.
func (f *flight) hasten() {
	if !f.maker.want.boarding {
		f.maker.job.maker.Hasten(&f.maker.want.inner, f.urgent.job.stake.share, f.urgent.job.stake.step(f.urgent.want), f.urgent.want.Due)
	}
}

// begin has p make the batch for itself and others. It is called with mu held, and gives it back.
func (l *flights) begin(key flightKey, p *passenger, others []*passenger) {
	p.want.boarding = true
	f := &flight{key: key, maker: p, urgent: p}
	for _, o := range others {
		f.join(o)
	}
	l.all[key] = f
	l.mu.Unlock()
	done := p.want.Done
	p.want.Done = func(m Made) {
		l.land(f, &m)
		done(m)
	}
	l.board(p, f)
}

// board submits a want, of a flight if it makes one. What befalls it meanwhile does so when the pipeline has it.
func (l *flights) board(p *passenger, f *flight) {
	p.job.submitName(p.want, p.name)
	l.mu.Lock()
	p.want.boarding = false
	if f != nil {
		f.hasten()
	}
	cancelled := p.want.cancelled
	l.mu.Unlock()
	if cancelled {
		p.job.maker.Cancel(&p.want.inner)
	}
}

// land gives a batch to all who wait for it, while it is still there. If there is none, the first of them has it made. Whoever asks finds
// it in the making or on the shelf.
func (l *flights) land(f *flight, m *Made) {
	k := l.copy(f.key, m)
	l.mu.Lock()
	if k != nil {
		l.kept.put(k)
	}
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
}

// serve copies a batch that another want had made, or has it made again where the copy would find no room.
func (l *flights) serve(p *passenger, m *Made) {
	w, data := p.want, p.want.Dst
	if len(data) < len(m.Data) && w.Grow != nil {
		data = w.Grow(len(m.Data))
	}
	if len(data) < len(m.Data) {
		l.board(p, nil)
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

// copy is a batch for the shelf; nil: there is none, or it is too large.
func (l *flights) copy(key flightKey, m *Made) *kept {
	if m.Failure != nil || int64(len(m.Data)) > l.kept.limit {
		return nil
	}
	return &kept{key: key, header: m.Header, data: slices.Clone(m.Data)}
}
