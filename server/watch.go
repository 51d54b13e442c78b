package server

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/control"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/timeout"
	"github.com/feedwater-io/feedwater/watch"
)

// maxWatchers bounds how many Watch calls are answered at once.
const maxWatchers = 64

// Watch implements the service Feed. It ends when the node has drained, and when the watcher takes no data for StallTimeout.
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

// serveWatcher serves a watcher. A send that blocks can be ended by the handler's return alone, so it is another goroutine's; Close waits for it.
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
		s.metrics.stalled.Inc()
		return &StalledError{After: limit}
	}
}

// Wanted is how many nodes like this one would feed all the jobs that have streams here.
func (s *Server) Wanted() control.Wanted { return s.demand.Wanted() }

// Source is what there is to watch of this node.
func (s *Server) Source() *watch.Source { return s.source }

func newSource(s *Server) *watch.Source {
	return watch.New(watch.Options{
		Kind: "node", Version: s.options.Build, Cores: float64(s.engine.Workers()), Registry: &s.book, Wanted: s.demand.JobNodes,
		Nodes: func(now time.Time) func(time.Time) []*pb.NodeStatus {
			before := s.load.readLoad(s.engine, now)
			return func(now time.Time) []*pb.NodeStatus {
				after := s.load.readLoad(s.engine, now)
				n := s.nodeStatus(before, after)
				before = after
				return []*pb.NodeStatus{n}
			}
		},
	})
}

// load counts what a node has done.
type load struct {
	batches, samples, bytes atomic.Int64
	wants                   atomic.Int64 // held now
}

func (l *load) countSent(m *Made, bytes int) {
	l.batches.Add(1)
	l.bytes.Add(int64(bytes))
	if f := m.Header.GetFields(); len(f) > 0 && len(f[0].Shape) > 0 {
		l.samples.Add(int64(f[0].Shape[0]))
	}
}

// reading is a load as of one moment, in base units.
type reading struct {
	at                            time.Time
	samples, bytes, making, files float64
}

func (l *load) readLoad(e Engine, now time.Time) reading {
	w := e.Work()
	return reading{now, float64(l.samples.Load()), float64(l.bytes.Load()), w.CoreSeconds, w.ReadSeconds}
}

// nodeStatus is this node, with rates between two readings.
func (s *Server) nodeStatus(before, after reading) *pb.NodeStatus {
	n := &pb.NodeStatus{
		State: "ready", Cores: float64(s.engine.Workers()), Queued: s.engine.Queued(), Wants: uint32(max(s.load.wants.Load(), 0)),
	}
	if s.streams.IsDraining() {
		n.State = "draining"
	}
	n.Error = describeTrouble(s.roots)
	n.Scans = s.finder.ListScans(after.at, func(snapshots.Folder) bool { return true })
	seconds := after.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		return n
	}
	making, samples := after.making-before.making, after.samples-before.samples
	n.SamplesPerSecond, n.BytesPerSecond = samples/seconds, (after.bytes-before.bytes)/seconds
	if n.Wants > 0 || making > 0 {
		cores := making / seconds
		n.EffectiveCores = &cores
	}
	if samples > 0 && making > 0 {
		cost := making / samples
		n.CoreSecondsPerSample = &cost
	}
	if files := after.files - before.files; files+making > 0 {
		read := files / (files + making)
		n.Read = &read
	}
	return n
}
