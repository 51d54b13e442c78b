package server

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/control"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/timeout"
)

// maxWatchers bounds how many Watch calls are answered at once.
const maxWatchers = 64

// Watch implements the service Feed. It ends when the node has drained, and when the watcher takes no data for
// StallTimeout.
func (s *Server) Watch(r *pb.WatchRequest, rpc grpc.ServerStreamingServer[pb.WatchResponse]) error {
	c, err := s.guard.RequireCaller(rpc.Context())
	if err == nil {
		err = s.guard.CheckWatch(c)
	}
	if err != nil {
		return toStatus(err)
	}
	account := c.Account()
	if !account.AddWatcher() {
		return status.Errorf(codes.ResourceExhausted, "%d watchers of yours are here already", admission.MaxAccountWatchers)
	}
	defer account.RemoveWatcher()
	if s.watchers.Add(1) > maxWatchers {
		s.watchers.Add(-1)
		return status.Errorf(codes.ResourceExhausted, "%d watchers are here already", maxWatchers)
	}
	defer s.watchers.Add(-1)
	return toStatus(s.serveWatcher(r, rpc))
}

// serveWatcher serves a watcher. A send that blocks can be ended by the handler's return alone, so it is another
// goroutine's; Close waits for it.
func (s *Server) serveWatcher(r *pb.WatchRequest, rpc grpc.ServerStreamingServer[pb.WatchResponse]) error {
	limit := s.options.StallTimeout
	stalled, done := make(chan struct{}, 1), make(chan error, 1)
	send := func(state *pb.WatchResponse) error {
		stall := timeout.AfterFunc(limit, func() { stalled <- struct{}{} })
		defer stall.Stop()
		return rpc.Send(state)
	}
	s.watching.Go(func() { done <- s.Source().Serve(rpc.Context(), s.streams.Drained(), r, send) })
	select {
	case err := <-done:
		return err
	case <-stalled:
		s.metrics.CountStalled()
		return &StalledError{After: limit}
	}
}

// Wanted is how many nodes like this one would feed all the jobs that have streams here.
func (s *Server) Wanted() control.Wanted { return s.demand.Wanted() }
