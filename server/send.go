package server

import (
	"slices"
	"time"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/server/metrics"
)

// noticeEvery is how often a node that holds wants speaks at least. Trainers take one that is silent for a second for
// dead.
const noticeEvery = 200 * time.Millisecond

// sendAnswers sends answers as they become ready, and notices, until the stream is complete or breaks.
func (t *stream) sendAnswers() error {
	tick := time.NewTicker(noticeEvery)
	defer tick.Stop()
	drained := t.server.streams.Draining()
	for {
		for {
			w := t.wants.takeAnswer()
			if w == nil {
				break
			}
			if err := t.sendAnswer(w, tick.C); err != nil {
				return err
			}
		}
		if t.wants.isIdle(t.server.streams.IsDraining()) {
			if drained != nil && t.server.streams.IsDraining() {
				return t.sendNotice(true)
			}
			return nil
		}
		select {
		case <-t.wants.wake:
		case <-tick.C:
			if err := t.sendNotice(false); err != nil {
				return err
			}
		case <-drained:
			drained = nil
			if err := t.sendNotice(true); err != nil {
				return err
			}
		case <-t.rpc.Context().Done():
			return t.rpc.Context().Err()
		}
	}
}

// sendNotice tells how the node is, if the trainer has wants here or must know.
func (t *stream) sendNotice(must bool) error {
	n := t.describeNode()
	if n.Wants == 0 && !must {
		return nil
	}
	return t.sendMessage(&pb.FetchResponse{Notice: n})
}

// describeNode is how the node is, for this stream's trainer.
func (t *stream) describeNode() *pb.Notice {
	n := &pb.Notice{Draining: t.server.streams.IsDraining(), Queued: t.server.engine.Queued(), Heard: t.heard.Load()}
	t.wants.describeWants(n)
	if n.Wants == 0 {
		return n
	}
	slices.Sort(n.Begun)
	if n.Trouble = t.job.Trouble(); n.Trouble != "" {
		t.server.waits.Warn("a batch waits for a server of objects", "err", n.Trouble)
	}
	run, speed := t.job.run, t.server.demand.EffectiveCores() // there were wants, so there is a job
	n.AheadSeconds, n.SampleSeconds = t.server.engine.Ahead(run.Account)/speed, run.RecentCost()/speed
	return n
}

// sendAnswer sends a failure or a batch, and ends the want.
func (t *stream) sendAnswer(w *want, tick <-chan time.Time) error {
	defer t.wants.endWant(w)
	switch {
	case w.made.Failure != nil:
		return t.sendFailure(w, w.made.Failure)
	case t.wants.isCancelled(w):
		return t.sendFailure(w, toFailure(pipeline.ErrCancelled))
	}
	return t.sendBatch(w, tick)
}

func (t *stream) sendFailure(w *want, f *pb.Failure) error {
	t.server.metrics.CountFailure(f)
	t.wants.endWant(w)
	return t.sendMessage(&pb.FetchResponse{Id: w.id, Failure: f})
}

// sendBatch sends a batch in pieces that refer to its slot. The slot goes back when gRPC has let go of the last of
// them.
func (t *stream) sendBatch(w *want, tick <-chan time.Time) error {
	size := len(w.made.Data)
	batch := w.slots[0].LeaseBytes(size)
	w.slots = nil
	defer batch.Free()
	if err := t.sendNotice(true); err != nil {
		return err
	}
	for offset := 0; offset < size; {
		if offset > 0 && t.wants.isCancelled(w) {
			return t.sendFailure(w, toFailure(pipeline.ErrCancelled))
		}
		head := &pb.FetchResponse{Id: w.id, Offset: uint64(offset), Size: uint64(size)}
		if offset == 0 {
			head.Header = w.made.Header
		}
		end := min(offset+t.pieceBytes-batchmem.FrontBytes(head, t.pieceBytes), size)
		if err := t.pauseSending(t.account.ReserveBytes(end-offset), tick); err != nil {
			return err
		}
		if end == size {
			t.wants.endWant(w)
		}
		p := &batchmem.Piece{Head: head, Data: batch.Slice(offset, end)}
		if err := t.sendMessage(p); err != nil {
			return err
		}
		offset = end
		select {
		case <-tick:
			if err := t.sendNotice(true); err != nil {
				return err
			}
		default:
		}
	}
	t.server.metrics.CountSent(w.made.Header, size, w.arrived)
	t.record.CountSent(metrics.SamplesOf(w.made.Header), size)
	t.server.load.CountSent(w.made.Header, size)
	t.keepThumbnails(w)
	return nil
}

// pauseSending keeps an identity to its rate. The node goes on saying that it lives.
func (t *stream) pauseSending(d time.Duration, tick <-chan time.Time) error {
	if d <= 0 {
		return nil
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-tick:
			if err := t.sendNotice(true); err != nil {
				return err
			}
		case <-t.rpc.Context().Done():
			return t.rpc.Context().Err()
		}
	}
}

// sendMessage sends a FetchResponse or a piece of one; it blocks while the trainer takes nothing.
func (t *stream) sendMessage(m any) error {
	t.sending.Store(int64(time.Since(t.began)) + 1)
	defer t.sending.Store(0)
	return t.rpc.SendMsg(m)
}
