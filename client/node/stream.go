package node

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// stream is a Fetch call to a node. It starts two goroutines, one that sends and one that receives, and Close waits for both.
type stream struct {
	rpc    grpc.BidiStreamingClient[pb.FetchRequest, pb.FetchResponse]
	notice func(*pb.Notice)
	cancel context.CancelFunc
	began  time.Time
	heard  atomic.Int64 // nanoseconds since began, which a clock that is set does not change
	wake   chan struct{}
	ended  chan struct{}

	mu     sync.Mutex
	closed bool
	err    error
	lastID uint64
	leases map[uint64]*lease
	ids    map[*Attempt]uint64
	outbox []outgoing
	pulse  *pb.Pulse // not sent yet
}

// outgoing is a request to be sent; if attempt is set, its want.
type outgoing struct {
	request *pb.FetchRequest
	due     time.Time
}

// fetch starts a stream over a connection.
func fetch(ctx context.Context, feed pb.FeedClient, start *pb.Start, notice func(*pb.Notice)) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	rpc, err := feed.Fetch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	// This commits the call to its connection. When that breaks early gRPC would else begin the call again on a new one by itself,
	// and while receiving went on there, Send might have been told that the call is over: nothing would ever be asked for.
	_ = rpc.Context()
	s := &stream{
		rpc: rpc, notice: notice, cancel: cancel,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		leases: map[uint64]*lease{}, ids: map[*Attempt]uint64{}, began: time.Now(),
	}
	s.outbox = []outgoing{{request: &pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: start}}}}
	var sender sync.WaitGroup
	sender.Go(func() { s.send(ctx) })
	go func() { // ends when the call does; Close waits for ended
		err := s.receive()
		cancel()
		sender.Wait()
		s.end(err)
	}()
	return s, nil
}

// Send implements Stream.
func (s *stream) Send(a *Attempt) {
	s.mu.Lock()
	if s.closed {
		err := s.err
		s.mu.Unlock()
		a.Done(Answer{Err: lost(err)})
		return
	}
	s.lastID++
	a.ID = s.lastID
	s.leases[s.lastID] = &lease{id: s.lastID, attempt: a}
	s.ids[a] = s.lastID
	want := &pb.Want{Id: s.lastID, Name: a.Name, Step: a.Step, Hedge: a.Hedge, Traceparent: a.Traceparent}
	if a.Deadline > 0 {
		want.Deadline = durationpb.New(a.Deadline)
	}
	s.post(outgoing{&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: want}}, a.Due})
	s.mu.Unlock()
}

// Cancel implements Stream.
func (s *stream) Cancel(a *Attempt) {
	s.mu.Lock()
	l := s.remove(s.ids[a])
	if l != nil {
		s.post(outgoing{request: cancelRequest(l.id, a.Reason)})
	}
	s.mu.Unlock()
	if l != nil {
		l.revoke()
		a.Done(Answer{Err: ErrCancelled})
	}
}

func cancelRequest(id uint64, why pb.CancelReason) *pb.FetchRequest {
	return &pb.FetchRequest{Request: &pb.FetchRequest_Cancel{Cancel: &pb.Cancel{Id: id, Reason: why}}}
}

// Heard implements Stream.
func (s *stream) Heard() time.Time { return s.began.Add(time.Duration(s.heard.Load())) }

// Ended implements Stream.
func (s *stream) Ended() <-chan struct{} { return s.ended }

// Err implements Stream.
func (s *stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close implements Stream.
func (s *stream) Close() {
	s.cancel()
	<-s.ended
}

// post queues a request. mu is held.
func (s *stream) post(o outgoing) {
	s.outbox = append(s.outbox, o)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// remove takes an attempt out of the books; whoever gets it calls Done. mu is held.
func (s *stream) remove(id uint64) *lease {
	l := s.leases[id]
	if l != nil {
		delete(s.leases, id)
		delete(s.ids, l.attempt)
	}
	return l
}

// send writes requests until the call ends. It may block while the node does not read.
func (s *stream) send(ctx context.Context) {
	for {
		s.mu.Lock()
		batch := s.outbox
		s.outbox = nil
		if s.pulse != nil {
			batch = append(batch, outgoing{request: &pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: s.pulse}}})
			s.pulse = nil
		}
		s.mu.Unlock()
		for _, o := range batch {
			if w := o.request.GetWant(); w != nil && !o.due.IsZero() {
				w.Due = durationpb.New(time.Until(o.due))
			}
			if s.rpc.Send(o.request) != nil {
				return // receive learns why
			}
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (s *stream) receive() error {
	in := &inbound{take: s.take}
	for {
		if err := s.rpc.RecvMsg(in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// take handles one response. It runs within the codec, while the transport's frames are there.
func (s *stream) take(m *pb.FetchResponse, p payload) error {
	s.heard.Store(int64(time.Since(s.began)))
	if m.Notice != nil {
		s.notice(m.Notice)
	}
	s.mu.Lock()
	l := s.leases[m.Id]
	s.mu.Unlock()
	switch {
	case m.Id == 0 || l == nil: // cancelled while it was on its way
		return nil
	case m.Failure != nil:
		s.finish(l, Answer{Failure: m.Failure})
		return nil
	}
	answer, err := l.land(m, p)
	if answer != nil {
		s.finish(l, *answer)
	}
	return err
}

// finish ends an attempt, if Cancel was not faster.
func (s *stream) finish(l *lease, answer Answer) {
	s.mu.Lock()
	mine := s.remove(l.id) != nil
	if mine && answer.Err != nil {
		s.post(outgoing{request: cancelRequest(l.id, 0)}) // the rest of it is of no use
	}
	s.mu.Unlock()
	if mine {
		l.attempt.Done(answer)
	}
}

// end answers all attempts that are left. Nobody receives any more.
func (s *stream) end(err error) {
	s.mu.Lock()
	s.closed, s.err = true, err
	left := s.leases
	s.leases, s.ids, s.outbox = nil, nil, nil
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(left)) {
		left[id].attempt.Done(Answer{Err: lost(err)})
	}
	close(s.ended)
}
