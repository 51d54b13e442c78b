package server

import (
	"google.golang.org/protobuf/proto"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/dedup"
)

// sharedWant is a want whose batch others may want too.
type sharedWant struct {
	job  *Job
	want *Want
	name batch.Name
}

// submitShared is submitName for a want whose batch others may want too; message is its name.
func (j *Job) submitShared(w *Want, name batch.Name, message *pb.Name) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if j.shared == nil || err != nil {
		j.submitName(w, name)
		return
	}
	w.waiter.Want = &sharedWant{j, w, name}
	j.shared.Submit(dedup.Key{Data: j.data, Masks: j.masks, Plan: j.hash, Name: string(text)}, &w.waiter)
}

// Priority implements dedup.Want.
func (s *sharedWant) Priority() dedup.Priority {
	return dedup.Priority{Account: s.job.run.Account, Step: s.job.run.StepOf(s.want.Step), Due: s.want.Due}
}

// Submit implements dedup.Want.
func (s *sharedWant) Submit(publish func(*dedup.Batch)) {
	if publish != nil {
		done := s.want.Done
		s.want.Done = func(m Made) {
			if m.Failure != nil {
				publish(nil)
			} else {
				publish(&dedup.Batch{Header: m.Header, Data: m.Data})
			}
			done(m)
		}
	}
	s.job.submitName(s.want, s.name)
}

// MoveUp implements dedup.Want.
func (s *sharedWant) MoveUp(p dedup.Priority) {
	s.job.maker.Hasten(&s.want.inner, p.Account, p.Step, p.Due)
}

// Cancel implements dedup.Want.
func (s *sharedWant) Cancel() { s.job.maker.Cancel(&s.want.inner) }

// Reserve implements dedup.Want.
func (s *sharedWant) Reserve(bytes int) []byte {
	room := s.want.Dst
	if len(room) < bytes && s.want.Grow != nil {
		room = s.want.Grow(bytes)
	}
	return room
}

// FinishShared implements dedup.Want.
func (s *sharedWant) FinishShared(b *dedup.Batch, room []byte) {
	header, _ := proto.Clone(b.Header).(*pb.Header)
	header.CoreSeconds, header.QueuedSeconds = 0, 0
	s.job.run.AddBatch(0, s.name.Len())
	s.want.Done(Made{Header: header, Data: room[:copy(room, b.Data)], Shared: true})
}

// FinishCancelled implements dedup.Want.
func (s *sharedWant) FinishCancelled() {
	s.want.Done(Made{Failure: toFailure(pipeline.ErrCancelled), Err: pipeline.ErrCancelled})
}
