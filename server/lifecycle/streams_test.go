package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/feedwater-io/feedwater/server/lifecycle"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A node that drains takes no stream, and has drained when the last one that was open is closed.
func TestDrain(t *testing.T) {
	s := lifecycle.NewStreams()
	if !s.OpenStream() || s.IsDraining() || isClosed(s.Draining()) {
		t.Fatal("a new node takes streams and does not drain")
	}
	if !s.OpenStream() {
		t.Fatal("a node takes a second stream")
	}
	if !s.BeginDrain() || s.BeginDrain() {
		t.Error("the first call alone begins the drain")
	}
	if s.OpenStream() || !s.IsDraining() || !isClosed(s.Draining()) {
		t.Error("a node that drains takes no stream")
	}
	s.CloseStream()
	if s.CountOpen() != 1 || isClosed(s.Drained()) {
		t.Errorf("%d streams are open, drained: %v", s.CountOpen(), isClosed(s.Drained()))
	}
	s.CloseStream()
	if !isClosed(s.Drained()) || s.WaitDrained(t.Context()) != nil {
		t.Error("no stream is open, and the node has not drained")
	}
}

// A node without streams has drained as soon as it drains.
func TestDrainWithoutStreams(t *testing.T) {
	s := lifecycle.NewStreams()
	if isClosed(s.Drained()) {
		t.Error("drained before it began")
	}
	s.BeginDrain()
	if !isClosed(s.Drained()) {
		t.Error("not drained")
	}
}

// Memory may come back after a stream's end, and both are waited for no longer than the caller wants.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lifecycle.NewStreams()
		s.OpenStream()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(nil)
		if err := s.WaitDrained(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("WaitDrained: %v", err)
		}
		s.BeginDrain()
		s.CloseStream()
		if err := s.WaitReturned(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("WaitReturned: %v", err)
		}
		returned := make(chan error, 1)
		go func() { returned <- s.WaitReturned(t.Context()) }()
		synctest.Wait()
		if len(returned) != 0 {
			t.Error("WaitReturned did not wait")
		}
		s.ReturnMemory()
		if err := <-returned; err != nil {
			t.Error(err)
		}
	})
}
