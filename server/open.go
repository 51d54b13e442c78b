package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/runs"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// maxJobBytes bounds the names of jobs.
const maxJobBytes = 256

func checkJob(name string) error {
	if len(name) > maxJobBytes {
		return &batch.PlanError{Field: "job", Message: fmt.Sprintf("a name of %d bytes", len(name)), Nearest: fmt.Sprintf("at most %d", maxJobBytes)}
	}
	return nil
}

// Open implements the service Feed. Errors are gRPC status errors.
func (s *Server) Open(ctx context.Context, request *pb.OpenRequest) (*pb.OpenResponse, error) {
	if s.streams.IsDraining() {
		return nil, toStatus(errDraining)
	}
	if err := checkJob(request.GetJob()); err != nil {
		return nil, toStatus(err)
	}
	if err := s.checkProtocol(request); err != nil {
		return nil, toStatus(err)
	}
	j, err := s.jobs.bindPlan(ctx, request, lookOf(request))
	if err != nil {
		return nil, toStatus(err)
	}
	defer j.Close()
	run := runs.Key{Identity: admission.CallerOf(ctx).Name(), Job: request.GetJob(), Plan: j.maker.Plan().Hash()}
	if err := s.runs.CheckTrainer(run, request.GetTrainer()); err != nil {
		return nil, toStatus(explainMismatch(err))
	}
	return s.describeJob(j), nil
}

// lookOf is how a request wants the data to be looked at.
func lookOf(r *pb.OpenRequest) snapshots.Look {
	look := snapshots.Look{Again: true}
	if within := r.GetListedWithin(); within != nil {
		look.Since = time.Now().Add(-max(within.AsDuration(), 0))
	}
	return look
}

// Job binds a plan to the data that it names. The caller closes it after the last Done.
func (s *Server) Job(ctx context.Context, start *pb.Start) (*Job, error) {
	j, err := s.jobs.beginJob(ctx, start, &runs.Trainer{})
	return j, toStatus(err)
}

// checkProtocol refuses trainers of a revision that is served no more.
func (s *Server) checkProtocol(r *pb.OpenRequest) error {
	if o, spoken := &s.options, max(r.GetProtocol(), 1); spoken < o.OldestProtocol {
		return &VersionError{Spoken: spoken, Trainer: filename.Brief(r.GetTrainer().GetBuild()), Oldest: o.OldestProtocol, Build: o.Build}
	}
	return nil
}

func (s *Server) describeJob(j *Job) *pb.OpenResponse {
	plan := j.maker.Plan()
	r := &pb.OpenResponse{
		Plan: string(plan.Canonical()), PlanHash: plan.Hash(), OrderHash: plan.OrderHash(), PixelHash: plan.PixelHash(),
		Numerics: s.engine.Numerics(), Fingerprint: j.data.Fingerprint(), Samples: uint64(j.data.Len()),
		Classes: fromClasses(j.data.Classes()),
		Version: s.options.Version, Kernels: s.engine.Kernels(), Workers: uint32(s.engine.Workers()),
		Protocol: s.options.Protocol, Revisions: s.jobs.revisionsOf(plan),
	}
	r.Store, r.Versions = j.versions()
	r.Listing = j.listing()
	for _, f := range j.maker.Fields() {
		r.Fields = append(r.Fields, fromField(f))
	}
	for _, o := range j.maker.Ops() {
		r.Ops = append(r.Ops, &pb.Op{Name: o.Name, Place: o.Place, Dialect: o.Dialect, Tier: o.Tier, Arguments: string(o.Arguments)})
	}
	return r
}

// Replay implements the service Feed. Errors are gRPC status errors.
func (s *Server) Replay(ctx context.Context, request *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	if s.streams.IsDraining() {
		return nil, toStatus(errDraining)
	}
	select {
	case s.replays <- struct{}{}:
		defer func() { <-s.replays }()
	case <-s.streams.Draining():
		return nil, toStatus(errDraining)
	case <-ctx.Done():
		return nil, toStatus(ctx.Err())
	}
	j, err := s.jobs.bindPlan(ctx, request, snapshots.Look{})
	if err != nil {
		return nil, toStatus(err)
	}
	defer j.Close()
	store, _ := j.versions()
	if err := j.checkVersions(request.GetStores()[store]); err != nil {
		return nil, toStatus(err)
	}
	j.run = s.runs.EnterRun(runs.Key{Identity: admission.CallerOf(ctx).Name(), Plan: j.maker.Plan().Hash()})
	r, err := s.replaySamples(ctx, j, request)
	return r, toStatus(err)
}

func (s *Server) replaySamples(ctx context.Context, j *Job, request *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	name, err := toName(request.GetName())
	if err != nil {
		return nil, err
	}
	if n := name.Len(); n > s.options.ReplaySamples {
		return nil, &batch.PlanError{Field: "name", Message: fmt.Sprintf("%d samples in one replay", n), Nearest: fmt.Sprintf("at most %d", s.options.ReplaySamples)}
	}
	r := &pb.ReplayResponse{}
	most, step := 0, name.Len()
	if request.GetPixels() {
		most, step = s.options.ReplayBytes, 1 // they may be huge: there is never more than fits
	}
	for at := 0; at < name.Len(); at += step {
		samples, err := j.maker.Replay(ctx, name.Part(at, min(at+step, name.Len())), most, j.run.Account)
		var room *pipeline.RoomError
		if errors.As(err, &room) {
			return nil, &admission.BusyError{Message: s.describeRoom(name.Len(), room)}
		}
		if err != nil {
			return nil, j.explainError(err)
		}
		for i := range samples {
			p := fromSample(&samples[i])
			if p.Error != nil {
				p.Error.Offset = uint32(at + i)
			}
			if most > 0 {
				most = max(1, most-len(p.Image)) // 0 would ask for no pixels
			}
			r.Samples = append(r.Samples, p)
		}
	}
	return r, nil
}

// describeRoom says why an answer with so many samples cannot be made, and what can.
func (s *Server) describeRoom(samples int, room *pipeline.RoomError) string {
	if samples > 1 {
		return fmt.Sprintf("the answer takes more than %d bytes; replay fewer samples at once", s.options.ReplayBytes)
	}
	return fmt.Sprintf("the sample has %d bytes of pixels, more than the %d of an answer; transforms that crop or resize it make fewer", room.Bytes, s.options.ReplayBytes)
}

// Progress implements the service Feed. Errors are gRPC status errors.
func (s *Server) Progress(ctx context.Context, request *pb.ProgressRequest) (*pb.ProgressResponse, error) {
	scans, err := s.listScans(ctx, request.GetPlan())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ProgressResponse{Scans: scans}, nil
}

// listScans are the scans that a plan waits for, of folders that the caller may read.
func (s *Server) listScans(ctx context.Context, text string) ([]*pb.Scan, error) {
	if _, err := s.guard.RequireCaller(ctx); err != nil {
		return nil, err
	}
	plan, err := pipeline.ParsePlan([]byte(text))
	if err != nil {
		return nil, err
	}
	sources := []pipeline.Source{plan.Source}
	if plan.Masks != nil {
		sources = append(sources, plan.Masks.Source)
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
	data, err := s.finder.OpenSource(ctx, admission.CallerOf(ctx), source, snapshots.Look{Again: true})
	if err != nil {
		return err
	}
	data.Release()
	return nil
}
