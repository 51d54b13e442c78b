package server

import (
	"context"
	"time"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
)

// Progress implements the service Feed. Errors are gRPC status errors.
func (s *Server) Progress(ctx context.Context, request *pb.ProgressRequest) (*pb.ProgressResponse, error) {
	scans, err := s.progress(ctx, request.GetPlan())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ProgressResponse{Scans: scans}, nil
}

// progress are the scans that a plan waits for, of folders that the caller may read.
func (s *Server) progress(ctx context.Context, text string) ([]*pb.Scan, error) {
	if _, err := s.guard.RequireCaller(ctx); err != nil {
		return nil, err
	}
	plan, err := pipeline.ParsePlan([]byte(text))
	if err != nil {
		return nil, err
	}
	sources := []pipeline.Source{plan.Source}
	if plan.Masks != nil {
		sources = append(sources, *plan.Masks)
	}
	var scans []*pb.Scan
	for _, source := range sources {
		may, err := s.finder.SelectFolders(ctx, admission.CallerOf(ctx), source)
		if err != nil {
			return nil, err
		}
		scans = append(scans, s.finder.ListScans(time.Now(), may)...)
	}
	return scans, nil
}

// Preload lists the files of a data set, so that the first Open of it need not wait for that.
func (s *Server) Preload(ctx context.Context, source pipeline.Source) error {
	data, err := s.finder.OpenSource(ctx, admission.CallerOf(ctx), source, true)
	if err != nil {
		return err
	}
	data.Release()
	return nil
}
