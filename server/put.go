package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/batch"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/tables"
)

// Put implements the service Feed. Errors are gRPC status errors. The handler only watches, so that a trainer that
// sends nothing any more is not waited for.
func (s *Server) Put(rpc grpc.ClientStreamingServer[pb.PutRequest, pb.PutResponse]) error {
	caller, err := s.guard.RequireCaller(rpc.Context())
	if err != nil {
		return toStatus(err)
	}
	if err := caller.Account().AddStream(); err != nil {
		return toStatus(err)
	}
	defer caller.Account().RemoveStream()
	if !s.streams.OpenStream() {
		return toStatus(errDraining)
	}
	defer s.streams.CloseStream()
	var pieces atomic.Int64
	kept := make(chan error, 1)
	go func() { // Close waits for it
		defer s.streams.ReturnMemory()
		kept <- s.keepStream(rpc, &pieces)
	}()
	limit := s.options.StallTimeout
	stalled := time.NewTicker(limit)
	defer stalled.Stop()
	for before := int64(-1); ; before = pieces.Load() {
		select {
		case err := <-kept:
			if err != nil {
				return toStatus(err)
			}
			return rpc.SendAndClose(&pb.PutResponse{})
		case <-stalled.C:
			if pieces.Load() == before {
				return toStatus(&StalledError{After: limit})
			}
		}
	}
}

// keepStream keeps the table that a call brings. It counts its pieces.
func (s *Server) keepStream(rpc grpc.ClientStreamingServer[pb.PutRequest, pb.PutResponse], pieces *atomic.Int64) error {
	first, err := rpc.Recv()
	if err != nil {
		return err
	}
	text := &putReader{rpc: rpc, rest: first.GetData(), pieces: pieces}
	return s.keepTable(rpc.Context(), first.GetTable(), int64(min(first.GetBytes(), 1<<62)), text)
}

// putReader reads the text that a call brings.
type putReader struct {
	rpc    grpc.ClientStreamingServer[pb.PutRequest, pb.PutResponse]
	rest   []byte
	pieces *atomic.Int64
}

func (p *putReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		r, err := p.rpc.Recv()
		if err != nil {
			return 0, err
		}
		p.pieces.Add(1)
		p.rest = r.GetData()
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// PutTable is Put without a wire: it keeps a table of so many bytes by its SHA-256, in hex. Errors are gRPC status
// errors.
func (s *Server) PutTable(ctx context.Context, table string, bytes int64, text io.Reader) error {
	return toStatus(s.keepTable(ctx, table, bytes, text))
}

func (s *Server) keepTable(ctx context.Context, table string, bytes int64, text io.Reader) error {
	if s.options.Tables == nil {
		return &batch.PlanError{Field: "source.table", Message: "is not taken by this node"}
	}
	err := s.options.Tables.Keep(admission.CallerOf(ctx).Name(), table, bytes, text)
	var limit *tables.LimitError
	switch {
	case errors.As(err, &limit):
		return &batch.PlanError{Field: "source.table", Message: limit.Error()}
	case errors.Is(err, tables.ErrOtherText):
		return &ProtocolError{Message: err.Error()}
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("keep a table: %w", err)
	}
	return err
}
