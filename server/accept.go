package server

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/batchmem"
)

// newWant is a want that arrived, without memory or a name.
func newWant(r *pb.Want, at time.Time) *want {
	due := at.Add(max(r.GetDue().AsDuration(), -latest))
	return &want{id: r.GetId(), epoch: r.GetName().GetEpoch(), arrived: at, inner: Want{
		Request: batch.Request{Step: r.GetStep(), Due: due, Traceparent: r.GetTraceparent()}, Checksum: true,
	}}
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
	case t.wants.hasWant(id):
		return &ProtocolError{fmt.Sprintf("id %d is in use", id)}
	}
	t.heard.Store(id)
	if r.GetHedge() {
		t.server.metrics.CountHedge()
	}
	w := newWant(r, time.Now())
	name, err := toName(r.GetName())
	if err == nil {
		err = t.admitWant(w, name)
	}
	if err != nil {
		t.job.traceRefusal(r.GetTraceparent(), w.arrived, err)
		return t.refuseWant(w, err)
	}
	w.inner.Grow = func(bytes int) []byte { return t.growSlot(w, bytes) }
	w.inner.Charge = func(bytes int) bool { return t.chargeWant(w, int64(bytes)) }
	w.inner.Begun = func() { w.begun.Store(true) }
	w.inner.Done = func(m Made) { t.finishWant(w, m) }
	t.job.traceWant(&w.inner, name)
	t.job.submitShared(&w.inner, name, r.GetName())
	// Its trainer gives it up then, and says so: whether or not that arrives.
	t.wants.setDeadline(w, r.GetDeadline().AsDuration(), t.cancelWant)
	return nil
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
	return t.wants.addWant(w, t.server.options.StreamWants, func() *batchmem.Slot { return t.quota.TakeSlot(bytes, 0) })
}

// refuseWant answers a want that was not taken on.
func (t *stream) refuseWant(w *want, err error) error {
	w.made = Made{Failure: toFailure(err)}
	t.failures.Add(1)
	return t.wants.queueRefusal(w)
}

// growSlot lends a larger slot to a want whose samples differ in size. The first one is kept: the pipeline may have
// written to it.
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

// finishWant takes a want back from the pipeline.
func (t *stream) finishWant(w *want, m Made) {
	t.quota.DischargeBytes(w.charged.Load())
	t.checkSendable(&m)
	if m.Failure == nil {
		t.server.metrics.CountMade(m.Header, w.arrived, w.inner.Due, m.Shared)
	}
	t.record.CountMade(m.Header, m.Failure)
	t.server.logUnread(m.Err)
	if m.Failure != nil {
		t.failures.Add(1)
	}
	t.wants.returnWant(w, m)
}

// logUnread logs what this machine's storage failed to give, unless there is much: trainers go elsewhere for it, and
// nobody else looks here.
func (s *Server) logUnread(err error) {
	var e *pipeline.ReadError
	if errors.As(err, &e) && !errors.As(err, new(*bulkhead.HungError)) { // of which the root tells
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

// withdrawWant is cancel for a trainer that says so, and why.
func (t *stream) withdrawWant(r *pb.Cancel) {
	if t.wants.hasWant(r.GetId()) {
		t.server.metrics.CountWithdrawn(r.GetReason())
	}
	t.cancelWant(r.GetId())
}

// cancelWant gives a want up. What is being sent of it is cut short.
func (t *stream) cancelWant(id uint64) {
	if w := t.wants.cancelWant(id); w != nil {
		t.job.Cancel(&w.inner)
	}
}
