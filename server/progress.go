package server

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/watch/pulse"
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
		may, err := s.waitsFor(ctx, source)
		if err != nil {
			return nil, err
		}
		scans = append(scans, s.library.progress(time.Now(), may)...)
	}
	return scans, nil
}

// waitsFor tells which folders' scans a source may wait for.
func (s *Server) waitsFor(ctx context.Context, source pipeline.Source) (func(Folder) bool, error) {
	if source.Root == "" && (source.Path == "" || !s.options.AnyPath) {
		return s.below(ctx, admission.CallerOf(ctx).AllowedRoots(s.rootNames())), nil // found by its fingerprint
	}
	if err := admission.CallerOf(ctx).CheckRoot(source.Root, s.rootNames()); err != nil {
		return nil, err
	}
	folder, err := s.folder(ctx, source)
	return func(f Folder) bool { return f == folder }, err
}

// progress are the scans that have begun, of folders that may be told of, in order of their names.
func (l *library) progress(now time.Time, may func(Folder) bool) []*pb.Scan {
	l.mu.Lock()
	defer l.mu.Unlock()
	var scans []*pb.Scan
	for _, f := range l.folders {
		if f.scan == nil || f.scan.began.IsZero() || !may(f.Folder) {
			continue
		}
		files, took := f.scan.files.Load(), now.Sub(f.scan.began)
		one := &pb.Scan{Folder: pulse.Clean(f.name), Files: uint64(files), Running: durationpb.New(took)}
		if seconds := took.Seconds(); seconds > 0 {
			one.FilesPerSecond = float64(files) / seconds
		}
		scans = append(scans, one)
	}
	slices.SortFunc(scans, func(a, b *pb.Scan) int { return cmp.Compare(a.Folder, b.Folder) })
	return scans
}

// sourceName is what people know the folder of a source by: root and path, as a Loader names it.
func sourceName(source pipeline.Source) string {
	if source.Root == "" {
		return string(source.Path)
	}
	return path.Join(source.Root, string(source.Path))
}

// Preload lists the files of a data set, so that the first Open of it need not wait for that.
func (s *Server) Preload(ctx context.Context, source pipeline.Source) error {
	data, err := s.snapshot(ctx, source, true)
	if err != nil {
		return err
	}
	data.release()
	return nil
}
