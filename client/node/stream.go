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

// stream is a Fetch call to a node. It starts two goroutines, one that sends and one that receives, and Close waits for
// both.
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
	outbox []queuedRequest
	pulse  *pb.Pulse // not sent yet
}

// queuedRequest is a request to be sent; if attempt is set, its want.
type queuedRequest struct {
	request *pb.FetchRequest
	due     time.Time
}

// newStream starts a stream over a connection.
func newStream(ctx context.Context, feed pb.FeedClient, start *pb.Start, notice func(*pb.Notice)) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	rpc, err := feed.Fetch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	// This commits the call to its connection. When that breaks early gRPC would else begin the call again on a new one
	// by itself, and while receiving went on there, Send might have been told that the call is over: nothing would ever
	// be asked for.
	_ = rpc.Context()
	s := &stream{
		rpc: rpc, notice: notice, cancel: cancel,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		leases: map[uint64]*lease{}, ids: map[*Attempt]uint64{}, began: time.Now(),
	}
	s.outbox = []queuedRequest{{request: &pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: start}}}}
	var sender sync.WaitGroup
	sender.Go(func() { s.sendRequests(ctx) })
	go func() { // ends when the call does; Close waits for ended
		err := s.receiveResponses()
		cancel()
		sender.Wait()
		s.failRemaining(err)
	}()
	return s, nil
}

// Send implements Stream.
func (s *stream) Send(a *Attempt) {
	s.mu.Lock()
	if s.closed {
		err := s.err
		s.mu.Unlock()
		a.Done(Answer{Err: newLostError(err)})
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
	s.queueRequest(queuedRequest{&pb.FetchRequest{Request: &pb.FetchRequest_Want{Want: want}}, a.Due})
	s.mu.Unlock()
}

// Cancel implements Stream.
func (s *stream) Cancel(a *Attempt) {
	s.mu.Lock()
	l := s.removeLease(s.ids[a])
	if l != nil {
		s.queueRequest(queuedRequest{request: cancelRequest(l.id, a.Reason)})
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

// queueRequest queues a request. mu is held.
func (s *stream) queueRequest(o queuedRequest) {
	s.outbox = append(s.outbox, o)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// removeLease takes an attempt out of those that wait for an answer; whoever gets it calls Done. mu is held.
func (s *stream) removeLease(id uint64) *lease {
	l := s.leases[id]
	if l != nil {
		delete(s.leases, id)
		delete(s.ids, l.attempt)
	}
	return l
}

// sendRequests writes requests until the call ends. It may block while the node does not read.
func (s *stream) sendRequests(ctx context.Context) {
	for {
		s.mu.Lock()
		batch := s.outbox
		s.outbox = nil
		if s.pulse != nil {
			batch = append(batch, queuedRequest{request: &pb.FetchRequest{Request: &pb.FetchRequest_Pulse{Pulse: s.pulse}}})
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

func (s *stream) receiveResponses() error {
	in := &responseReader{handle: s.handleResponse}
	for {
		if err := s.rpc.RecvMsg(in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// handleResponse handles one response. It runs within the codec, while the transport's frames are there.
func (s *stream) handleResponse(m *pb.FetchResponse, p payload) error {
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
		s.finishAttempt(l, Answer{Failure: m.Failure})
		return nil
	}
	answer, err := l.copyPiece(m, p)
	if answer != nil {
		s.finishAttempt(l, *answer)
	}
	return err
}

// finishAttempt ends an attempt, if Cancel was not faster.
func (s *stream) finishAttempt(l *lease, answer Answer) {
	s.mu.Lock()
	mine := s.removeLease(l.id) != nil
	if mine && answer.Err != nil {
		s.queueRequest(queuedRequest{request: cancelRequest(l.id, 0)}) // the rest of it is of no use
	}
	s.mu.Unlock()
	if mine {
		l.attempt.Done(answer)
	}
}

// failRemaining answers all attempts that are left. Nobody receives any more.
func (s *stream) failRemaining(err error) {
	s.mu.Lock()
	s.closed, s.err = true, err
	left := s.leases
	s.leases, s.ids, s.outbox = nil, nil, nil
	s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(left)) {
		left[id].attempt.Done(Answer{Err: newLostError(err)})
	}
	close(s.ended)
}
