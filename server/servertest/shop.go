package servertest

import (
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/control/share"
	"github.com/feedwater-io/feedwater/pipeline"
)

// shop makes samples on so many cores, each of which takes a fixed time. It runs a goroutine per core while there is
// work.
type shop struct {
	mu      sync.Mutex
	began   time.Time
	queue   share.Queue[*order]
	hand    share.BusyMeter
	own     *share.Account
	entries map[*pipeline.Want]*share.Entry[*order]
	cores   int // that work
	done    time.Duration
	samples int           // made
	pace    time.Duration // of a sample, if not SampleTime
}

// order is a want in the shop.
type order struct {
	maker     *maker
	want      *pipeline.Want
	end       func(pipeline.Result)
	begun     time.Time
	left      int
	cancelled bool
}

func (s *shop) now() float64 { return time.Since(s.began).Seconds() }

// submit queues a want; end gets its result.
func (e *Engine) submit(m *maker, w *pipeline.Want, end func(pipeline.Result)) {
	s := &e.shop
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.began, s.own, s.entries = time.Now(), share.NewAccount(1), map[*pipeline.Want]*share.Entry[*order]{}
		s.hand.Workers = e.Workers()
	}
	a := w.Account
	if a == nil {
		a = s.own
	}
	o := &order{maker: m, want: w, end: end, left: w.Name.Len()}
	due := -1.0
	if !w.Due.IsZero() {
		due = w.Due.Sub(s.began).Seconds()
	}
	s.hand.Add(o.left, s.now())
	s.entries[w] = s.queue.Push(o, a, w.Step, due, o.left)
	for range min(o.left, e.Workers()-s.cores) {
		s.cores++
		e.running.Go(e.work)
	}
}

// drop ends a want early.
func (s *shop) drop(w *pipeline.Want) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.entries[w]; entry != nil {
		entry.Value.cancelled = true
		s.queue.Drop(entry)
	}
}

// work is one core: it makes samples until there are none. A sleep that was too long makes the next one shorter, so
// that the pace holds.
func (e *Engine) work() {
	s := &e.shop
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now()
	for {
		turn, ok := s.queue.Take(s.now())
		if !ok {
			s.cores--
			return
		}
		o := turn.Entry.Value
		if o.begun.IsZero() {
			o.begun = time.Now()
			if o.want.Begun != nil {
				o.want.Begun()
			}
		}
		if !o.cancelled {
			d := e.pace()
			until = until.Add(d)
			s.mu.Unlock()
			time.Sleep(time.Until(until))
			s.mu.Lock()
			s.done += d
			s.samples++
		}
		s.hand.Add(-turn.Count, s.now())
		if o.left -= turn.Count; o.left == 0 {
			e.finish(turn.Entry)
		}
	}
}

// Ahead implements server.Engine.
func (e *Engine) Ahead(a *share.Account) float64 {
	e.shop.mu.Lock()
	defer e.shop.mu.Unlock()
	return e.shop.queue.Ahead(a)
}

// SetSampleTime makes the node faster or slower from its next samples on. SampleTime has to be set.
func (e *Engine) SetSampleTime(d time.Duration) {
	e.shop.mu.Lock()
	defer e.shop.mu.Unlock()
	e.shop.pace = d
}

// pace is how long a sample takes a core. mu is held.
func (e *Engine) pace() time.Duration {
	if e.shop.pace > 0 {
		return e.shop.pace
	}
	return e.SampleTime
}

// SamplesMade is how many were, with SampleTime.
func (e *Engine) SamplesMade() int {
	e.shop.mu.Lock()
	defer e.shop.mu.Unlock()
	return e.shop.samples
}

// finish ends a want. mu is held, and let go of while others are told.
func (e *Engine) finish(entry *share.Entry[*order]) {
	s, o := &e.shop, entry.Value
	delete(s.entries, o.want)
	r := pipeline.Result{Err: pipeline.ErrCancelled}
	cost := e.pace().Seconds() * float64(o.want.Name.Len())
	if !o.cancelled {
		s.queue.RecordCost(entry, time.Since(o.begun).Seconds(), cost)
	}
	cancelled := o.cancelled
	s.mu.Unlock()
	defer s.mu.Lock()
	if !cancelled && e.Fail != nil {
		r.Err = e.Fail(&o.want.Name)
		cancelled = r.Err != nil
	}
	if !cancelled {
		r = o.maker.fill(o.want)
		r.Begun, r.CoreSeconds = o.begun, cost
		if e.Result != nil {
			e.Result(&o.want.Name, &r)
		}
	}
	o.end(r)
}

// Work implements server.Engine. Without SampleTime no time is busy.
func (e *Engine) Work() pipeline.Work {
	s := &e.shop
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		return pipeline.Work{CoreSeconds: e.coreSeconds}
	}
	return pipeline.Work{CoreSeconds: s.done.Seconds(), BusySeconds: s.hand.Seconds(s.now())}
}
