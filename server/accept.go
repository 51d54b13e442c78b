package server

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/storage"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/timeout"
)

// want is one want of a stream, from its arrival to the end of its answer. Fields are guarded by stream.mu, but for those that
// the pipeline has until made.
type want struct {
	id        uint64
	arrived   time.Time
	due       time.Time
	slots     []*batchmem.Slot // the last one holds the batch
	charged   atomic.Int64
	begun     atomic.Bool
	deadline  *timeout.Timer // nil: none
	inner     Want
	made      Made
	cancelled bool
}

// latest is how late a want can be said to be.
const latest = time.Hour

// acceptWant takes a want on, or queues a failure as its answer.
func (t *stream) acceptWant(r *pb.Want) error {
	id := r.GetId()
	switch {
	case t.job == nil:
		return &ProtocolError{"a want before the start"}
	case id == 0:
		return &ProtocolError{"a want without an id"}
	case t.holdsWant(id):
		return &ProtocolError{fmt.Sprintf("id %d is in use", id)}
	}
	t.heard.Store(id)
	if r.GetHedge() {
		t.server.metrics.hedges.Inc()
	}
	w := &want{id: id, arrived: time.Now()}
	w.due = w.arrived.Add(max(r.GetDue().AsDuration(), -latest))
	name, err := toName(r.GetName())
	if err == nil {
		err = t.admitWant(w, name)
	}
	if err != nil {
		t.job.traceRefusal(r.GetTraceparent(), w.arrived, err)
		return t.refuseWant(w, err)
	}
	w.inner = Want{Request: batch.Request{Dst: w.slots[0].Bytes, Step: r.GetStep(), Due: w.due, Traceparent: r.GetTraceparent()}, Checksum: true}
	w.inner.Grow = func(bytes int) []byte { return t.growSlot(w, bytes) }
	w.inner.Charge = func(bytes int) bool { return t.chargeWant(w, int64(bytes)) }
	w.inner.Begun = func() { w.begun.Store(true) }
	w.inner.Done = func(m Made) { t.finishWant(w, m) }
	t.job.traceWant(&w.inner, name)
	t.job.submitShared(&w.inner, name, r.GetName())
	t.setDeadline(w, r.GetDeadline().AsDuration())
	return nil
}

// setDeadline gives a want up when its trainer has done so, whether or not a word of that arrives. 0: never. A time for which this node was suspended does
// not count: its trainer, which may have been suspended with it, gives up by itself.
func (t *stream) setDeadline(w *want, d time.Duration) {
	if d <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wants[w.id] == w {
		w.deadline = timeout.AfterFunc(d, func() { t.cancelWant(w.id) })
	}
}

func (t *stream) holdsWant(id uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wants[id] != nil
}

// admitWant lends a want its slot and enters it.
func (t *stream) admitWant(w *want, name batch.Name) error {
	if t.server.streams.IsDraining() {
		return errDraining
	}
	bytes := t.job.batchBytes(name)
	if !t.quota.Fits(bytes) {
		return tooLarge(bytes, t.quota.Limit)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return errDraining
	}
	if len(t.wants) >= t.server.options.StreamWants {
		return &admission.BusyError{Message: fmt.Sprintf("the stream holds %d wants already", len(t.wants)), RetryAfter: admission.RetryBusy}
	}
	if err := t.account.AddWant(); err != nil {
		return err
	}
	s := t.quota.TakeSlot(bytes, 0)
	if s == nil {
		t.account.RemoveWant()
		return &admission.BusyError{Message: "the memory for batches, or one's share of it, is used up", RetryAfter: admission.RetryBusy}
	}
	w.slots = []*batchmem.Slot{s}
	t.wants[w.id] = w
	t.server.load.wants.Add(1)
	t.making.Add(1)
	return nil
}

// maxAnswers bounds what a trainer that asks and does not listen can make a node remember.
const maxAnswers = 1 << 14

// refuseWant answers a want that was not taken on.
func (t *stream) refuseWant(w *want, err error) error {
	w.made = Made{Failure: toFailure(err)}
	t.failures.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.answers) >= maxAnswers {
		return &admission.BusyError{Message: fmt.Sprintf("%d answers wait for the trainer", len(t.answers)), RetryAfter: admission.RetryBusy}
	}
	t.queueAnswer(w)
	return nil
}

// queueAnswer queues a want's answer. mu is held.
func (t *stream) queueAnswer(w *want) {
	t.answers = append(t.answers, w)
	t.wakeSender()
}

func (t *stream) wakeSender() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// growSlot lends a larger slot to a want whose samples differ in size. The first one is kept: the pipeline may have written to it.
func (t *stream) growSlot(w *want, bytes int) []byte {
	if !t.quota.Fits(bytes) {
		return nil
	}
	s := t.quota.TakeSlot(bytes, w.heldBytes())
	if s == nil {
		return nil
	}
	w.slots = append(w.slots, s)
	return s.Bytes
}

// chargeWant takes memory for samples that differ in size out of the budget, until done.
func (t *stream) chargeWant(w *want, bytes int64) bool {
	if total := w.charged.Add(bytes); t.quota.Fits(int(2*total)) && t.quota.ChargeBytes(bytes, w.heldBytes()-bytes) { // see check
		return true
	}
	w.charged.Add(-bytes)
	return false
}

// heldBytes is the bytes that a want has which the pipeline has.
func (w *want) heldBytes() int64 { return int64(len(w.slots[0].Bytes)) + w.charged.Load() }

// finishWant takes a want back from the pipeline.
func (t *stream) finishWant(w *want, m Made) {
	defer t.making.Done()
	t.quota.DischargeBytes(w.charged.Load())
	t.checkSendable(&m)
	t.server.metrics.countMade(w, &m)
	t.record.countMade(&m)
	t.server.logUnread(m.Err)
	if m.Failure != nil {
		t.failures.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.made = m
	for len(w.slots) > 1 || m.Failure != nil && len(w.slots) > 0 {
		w.slots[0].Release(true)
		w.slots = w.slots[1:]
	}
	if t.ended {
		t.dropWant(w)
		return
	}
	t.queueAnswer(w)
}

// logUnread logs what this machine's storage failed to give, unless there is much: trainers go elsewhere for it, and nobody else looks here.
func (s *Server) logUnread(err error) {
	var e *pipeline.ReadError
	if errors.As(err, &e) && !errors.As(err, new(*storage.HungError)) { // of which the root tells
		s.misread.Warn("a sample could not be read", "key", filename.Text(e.Key), "index", e.Index, "err", e.Cause)
	}
}

// maxHeader bounds the description of a batch, so that its first piece stays below the 4 MiB that gRPC clients take.
const maxHeader = 1 << 20

// checkSendable makes failures of batches that cannot be sent from here.
func (t *stream) checkSendable(m *Made) {
	var room *pipeline.RoomError
	switch {
	case errors.As(m.Err, &room) && !t.quota.Fits(2*room.Bytes): // it is there twice while its samples are put together
		m.Failure = toFailure(tooLarge(room.Bytes, t.quota.Limit/2))
	case m.Failure == nil && proto.Size(m.Header) > maxHeader:
		m.Failure = toFailure(&admission.BusyError{Message: "the description of the batch is too long for a message; want fewer samples"})
	}
}

func tooLarge(bytes int, limit int64) error {
	return &admission.BusyError{Message: fmt.Sprintf("a batch of %d bytes; this node makes none over %d", bytes, limit)}
}

// dropWant forgets a want that nobody waits for. mu is held, and the pipeline has given the want back.
func (t *stream) dropWant(w *want) {
	for _, s := range w.slots {
		s.Release(true)
	}
	w.slots = nil
	if t.wants[w.id] == w { // a refused one never was
		delete(t.wants, w.id)
		if w.deadline != nil {
			w.deadline.Stop()
		}
		t.account.RemoveWant()
		t.server.load.wants.Add(-1)
	}
}

// withdrawWant is cancel for a trainer that says so, and why.
func (t *stream) withdrawWant(r *pb.Cancel) {
	if t.holdsWant(r.GetId()) {
		t.server.metrics.countWithdrawn(r.GetReason())
	}
	t.cancelWant(r.GetId())
}

// cancelWant gives a want up. What is being sent of it is cut short.
func (t *stream) cancelWant(id uint64) {
	t.mu.Lock()
	w := t.wants[id]
	if w != nil {
		w.cancelled = true
	}
	t.mu.Unlock()
	if w != nil {
		t.job.Cancel(&w.inner)
	}
}
