package server

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/thumbnail"
)

// Memory tells tests the bytes of all slots and of those that are lent.
func (s *Server) Memory() (used, lent int64) { return s.memory.CountBytes() }

// Streams is the number of streams whose handler runs.
func (s *Server) Streams() int { return s.streams.CountOpen() }

// Waiting is the number of callers that wait for scans.
func (s *Server) Waiting() int { return s.finder.CountWaiting() }

// FloodCalls has an address make calls until one is turned away, most at most, and tells how many were taken.
func (s *Server) FloodCalls(from net.Addr, most int) (taken int, err error) {
	for ; taken < most; taken++ {
		ctx, cancel := context.WithCancel(peer.NewContext(context.Background(), &peer.Peer{Addr: from}))
		ctx, err = s.authorize(ctx, &tap.Info{FullMethodName: pb.Feed_Open_FullMethodName})
		if err == nil {
			_, err = admission.InterceptUnary(ctx, nil, nil, func(context.Context, any) (any, error) { return nil, nil })
		}
		cancel()
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// ThumbnailDue is what is asked after each batch.
func ThumbnailDue(s *Server, now time.Time) bool {
	return s.thumbnails.Begin(thumbnail.Key{Job: "job", Plan: "plan"}, now)
}
