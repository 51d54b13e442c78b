// Package lifecycle counts the streams of a node until it has drained. A node that drains takes no further streams and
// lets those that are open finish what they hold. It has no goroutines of its own but those that wait.
package lifecycle

import (
	"context"
	"sync"
)

// Streams are the streams of a node. NewStreams makes one. Its methods may be called from many goroutines at once.
type Streams struct {
	draining chan struct{} // closed by BeginDrain
	drained  chan struct{} // closed when the node drains and no stream is open
	lending  sync.WaitGroup

	mu   sync.Mutex
	open int
}

// NewStreams returns the streams of a node that has none and does not drain.
func NewStreams() *Streams {
	return &Streams{draining: make(chan struct{}), drained: make(chan struct{})}
}

// OpenStream counts a stream in. It reports false where the node drains; else the caller owes one CloseStream and one
// ReturnMemory.
func (s *Streams) OpenStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsDraining() {
		return false
	}
	s.open++
	s.lending.Add(1)
	return true
}

// CloseStream counts a stream out whose handler returns. Memory that was lent to it may still be out: see ReturnMemory.
func (s *Streams) CloseStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.open == 0 && s.IsDraining() {
		close(s.drained)
	}
}

// ReturnMemory says that a stream has back all memory that was lent to it.
func (s *Streams) ReturnMemory() { s.lending.Done() }

// CountOpen is the number of streams whose handler runs.
func (s *Streams) CountOpen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// BeginDrain has no further streams taken. It reports whether it is the first call.
func (s *Streams) BeginDrain() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsDraining() {
		return false
	}
	close(s.draining)
	if s.open == 0 {
		close(s.drained)
	}
	return true
}

// IsDraining reports whether BeginDrain was called.
func (s *Streams) IsDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// Draining is closed when the node begins to drain.
func (s *Streams) Draining() <-chan struct{} { return s.draining }

// Drained is closed when the node drains and no stream is open.
func (s *Streams) Drained() <-chan struct{} { return s.drained }

// WaitDrained waits until Drained, and returns ctx's error where that comes first.
func (s *Streams) WaitDrained(ctx context.Context) error { return waitFor(ctx, s.drained) }

// WaitReturned waits until the memory of all streams has been returned, and returns ctx's error where that comes first.
func (s *Streams) WaitReturned(ctx context.Context) error {
	done := make(chan struct{})
	go func() { // ends with the last stream, for which whoever closes the node waits
		defer close(done)
		s.lending.Wait()
	}()
	return waitFor(ctx, done)
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
