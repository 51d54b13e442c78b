package local

import (
	"errors"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
)

// stream hands attempts to a job of this process. It has no goroutine of its own.
type stream struct {
	job   *server.Job
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	over   bool // ended is closed
	wants  map[*node.Attempt]*localWant
}

// localWant keeps a Cancel that comes while the want is being submitted from getting lost.
type localWant struct {
	server.Want

	mu                   sync.Mutex
	submitted, cancelled bool
}

func (w *localWant) submitTo(j *server.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancelled {
		w.Done(server.Made{Err: node.ErrCancelled})
		return
	}
	j.Submit(&w.Want)
	w.submitted = true
}

func (w *localWant) cancelAt(j *server.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancelled = true
	if w.submitted {
		j.Cancel(&w.Want)
	}
}

// Send implements node.Stream.
func (s *stream) Send(a *node.Attempt) {
	w := &localWant{Want: server.Want{Name: a.Name, Request: a.Request}}
	w.Done = func(m server.Made) { s.finishAttempt(a, m) }
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.wants[a] = w
	}
	s.mu.Unlock()
	if closed {
		a.Done(node.Answer{Err: client.ErrClosed})
		return
	}
	w.submitTo(s.job)
}

func (s *stream) finishAttempt(a *node.Attempt, m server.Made) {
	a.Done(answerOf(a, m))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wants, a)
	s.endIfIdle()
}

func answerOf(a *node.Attempt, m server.Made) node.Answer {
	var room *pipeline.RoomError
	switch {
	case errors.As(m.Err, &room): // what was lent is too small, as a stream over the wire says it too
		return node.Answer{Err: &node.RoomError{Bytes: uint64(room.Bytes)}}
	case m.Failure != nil:
		return node.Answer{Failure: m.Failure}
	case m.Header == nil:
		return node.Answer{Err: m.Err}
	}
	return node.Answer{Header: m.Header, Data: m.Data, Imaged: a.Image != nil}
}

// Cancel implements node.Stream.
func (s *stream) Cancel(a *node.Attempt) {
	s.mu.Lock()
	w := s.wants[a]
	s.mu.Unlock()
	if w != nil {
		w.cancelAt(s.job)
	}
}

// Pulse implements node.Stream. The agent, which is this process, knows it already.
func (s *stream) Pulse(*pb.Pulse) {}

// Heard implements node.Stream.
func (s *stream) Heard() time.Time { return time.Now() }

// Ended implements node.Stream.
func (s *stream) Ended() <-chan struct{} { return s.ended }

// Err implements node.Stream.
func (s *stream) Err() error { return nil }

// Close implements node.Stream.
func (s *stream) Close() {
	s.mu.Lock()
	s.closed = true
	var rest []*localWant
	for _, w := range s.wants {
		rest = append(rest, w)
	}
	s.endIfIdle()
	s.mu.Unlock()
	for _, w := range rest {
		w.cancelAt(s.job)
	}
	<-s.ended
}

// endIfIdle closes ended, and lets go of the job, when nothing more can come. mu is held.
func (s *stream) endIfIdle() {
	if s.closed && !s.over && len(s.wants) == 0 {
		s.over = true
		s.job.Close()
		close(s.ended)
	}
}
