package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/snapshots"
)

// Every error that a node can meet, and what a trainer is told.
func TestErrors(t *testing.T) {
	sample := &pipeline.SampleError{Offset: 3, Index: 17, Key: "cat/\xffx.jpg", Op: "decode", Cause: errors.New("damaged")}
	for _, c := range []struct {
		err    error
		code   codes.Code
		reason pb.Reason
		field  string
		meta   map[string]string
		retry  time.Duration
	}{
		{&batch.PlanError{Field: "transforms[1].size", Message: "-1", Nearest: "224"}, codes.InvalidArgument, pb.Reason_REASON_PLAN, "transforms[1].size", map[string]string{"nearest": "224"}, 0},
		{&batch.PlanError{Field: "name.position", Message: "out of range"}, codes.InvalidArgument, pb.Reason_REASON_NAME, "name.position", nil, 0},
		{sample, codes.DataLoss, pb.Reason_REASON_SAMPLE, "", nil, 0},
		{fmt.Errorf("no substitute: %w", sample), codes.DataLoss, pb.Reason_REASON_SAMPLE, "", nil, 0},
		{&pipeline.ReadError{Key: "a", Cause: &fs.PathError{Op: "open", Path: "a", Err: errors.New("input/output error")}}, codes.Unavailable, pb.Reason_REASON_READ, "", nil, 0},
		{&pipeline.ReadError{Key: "a", Cause: &dataset.TooLargeError{Path: "a"}}, codes.Unavailable, pb.Reason_REASON_READ, "", nil, 0},
		{&pipeline.ReadError{Key: "a", Cause: &dataset.ChangedError{Path: "a", What: "is gone"}}, codes.FailedPrecondition, pb.Reason_REASON_DATA_CHANGED, "", nil, 0},
		{&pipeline.RoomError{Bytes: 5}, codes.ResourceExhausted, pb.Reason_REASON_BUSY, "", nil, admission.RetryBusy},
		{pipeline.ErrCancelled, codes.Canceled, pb.Reason_REASON_CANCELLED, "", nil, 0},
		{pipeline.ErrClosed, codes.Unavailable, pb.Reason_REASON_DRAINING, "", nil, 0},
		{dataset.ErrClosed, codes.Unavailable, pb.Reason_REASON_DRAINING, "", nil, 0},
		{&snapshots.RootError{Root: "x", Have: []string{"a", "b"}}, codes.NotFound, pb.Reason_REASON_ROOT, "", map[string]string{"roots": "a,b"}, 0},
		{&snapshots.PathError{Root: "a", Path: "../b", Message: "leads out of it"}, codes.InvalidArgument, pb.Reason_REASON_ROOT, "source.path", map[string]string{"path": "../b"}, 0},
		{&snapshots.MissingError{Root: "a", Path: "b", Cause: dataset.ErrLayout}, codes.NotFound, pb.Reason_REASON_DATA_MISSING, "", map[string]string{"path": "b"}, 0},
		{&DiffersError{Pinned: "p", Found: "f"}, codes.FailedPrecondition, pb.Reason_REASON_DATA_DIFFERS, "", map[string]string{"pinned": "p", "found": "f"}, 0},
		{&DiffersError{Versions: true, Pinned: "p", Found: "f"}, codes.FailedPrecondition, pb.Reason_REASON_DATA_DIFFERS, "", map[string]string{"pinned": "p", "found": "f"}, 0},
		{&DiffersError{Numerics: true, Pinned: "p", Found: "f"}, codes.FailedPrecondition, pb.Reason_REASON_NUMERICS, "", map[string]string{"pinned": "p", "found": "f"}, 0},
		{&admission.BusyError{Message: "full", RetryAfter: time.Second}, codes.ResourceExhausted, pb.Reason_REASON_BUSY, "", nil, time.Second},
		{&admission.BusyError{Message: "too large"}, codes.ResourceExhausted, pb.Reason_REASON_TOO_LARGE, "", nil, 0},
		{&ProtocolError{"twice"}, codes.InvalidArgument, pb.Reason_REASON_PROTOCOL, "", nil, 0},
		{&StalledError{time.Minute}, codes.DeadlineExceeded, pb.Reason_REASON_STALLED, "", nil, 0},
		{&SilentError{time.Minute}, codes.Unavailable, pb.Reason_REASON_STALLED, "", nil, 0},
		{errDraining, codes.Unavailable, pb.Reason_REASON_DRAINING, "", nil, 0},
		{context.Canceled, codes.Canceled, pb.Reason_REASON_CANCELLED, "", nil, 0},
		{context.DeadlineExceeded, codes.DeadlineExceeded, pb.Reason_REASON_CANCELLED, "", nil, 0},
		{&fs.PathError{Op: "readdir", Path: "/x", Err: errors.New("stale handle")}, codes.Unavailable, pb.Reason_REASON_READ, "", nil, 0},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			s, ok := status.FromError(toStatus(c.err))
			if !ok || s.Code() != c.code || s.Message() != filename.Text(c.err.Error()) {
				t.Errorf("status %v, want code %v", s, c.code)
			}
			var info *errdetails.ErrorInfo
			var field string
			var retry time.Duration
			for _, d := range s.Details() {
				switch d := d.(type) {
				case *errdetails.ErrorInfo:
					info = d
				case *errdetails.BadRequest:
					field = d.FieldViolations[0].Field
				case *errdetails.RetryInfo:
					retry = d.RetryDelay.AsDuration()
				}
			}
			if info == nil || info.Domain != "feedwater" || info.Reason != c.reason.String() {
				t.Errorf("info %v, want reason %v", info, c.reason)
			}
			if field != c.field || retry != c.retry || fmt.Sprint(info.GetMetadata()) != fmt.Sprint(c.meta) {
				t.Errorf("field %q, retry %s, metadata %v; want %q, %s, %v", field, retry, info.GetMetadata(), c.field, c.retry, c.meta)
			}
			f := toFailure(c.err)
			if codes.Code(f.Code) != c.code || f.Reason != c.reason || f.RetryAfter.AsDuration() != c.retry {
				t.Errorf("failure %v", f)
			}
			if (f.SampleError != nil) != (c.reason == pb.Reason_REASON_SAMPLE) {
				t.Errorf("failure %v", f)
			}
		})
	}
}

func TestStatusErrorsStayAsTheyAre(t *testing.T) {
	err := status.Error(codes.Aborted, "as it was")
	if got := toStatus(err); status.Code(got) != codes.Aborted {
		t.Errorf("got %v", got)
	}
	if toStatus(nil) != nil {
		t.Error("nil is an error")
	}
}
