package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/pipeline"
	"github.com/feedwater-io/feedwater/pipeline/bulkhead"
	"github.com/feedwater-io/feedwater/pipeline/dataset"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/snapshots"
	"github.com/feedwater-io/feedwater/server/tables"
)

// verdict is what an error means to a trainer.
type verdict struct {
	code   codes.Code
	reason pb.Reason
	retry  time.Duration
	// metadata of ErrorInfo; field of BadRequest.
	metadata map[string]string
	field    string
}

// judge is the one place where errors become codes.
func judge(err error) verdict {
	var plan *batch.PlanError
	var revision *RevisionError
	var root *snapshots.RootError
	var path *snapshots.PathError
	var missing *snapshots.MissingError
	var differs *DiffersError
	var table *tables.MissingError
	var busy *admission.BusyError
	var access *admission.AccessError
	switch {
	case errors.Is(err, dataset.ErrLeadsOut):
		return verdict{code: codes.PermissionDenied}
	case errors.As(err, new(*pipeline.PanicError)):
		return verdict{code: codes.Internal}
	case errors.As(err, &access) && access.Identity == "":
		return verdict{code: codes.Unauthenticated}
	case errors.As(err, &access):
		return verdict{code: codes.PermissionDenied}
	case errors.As(err, &plan):
		return planVerdict(plan)
	case errors.As(err, new(*pipeline.SampleError)):
		return verdict{code: codes.DataLoss, reason: pb.Reason_REASON_SAMPLE}
	case errors.As(err, &revision):
		return verdict{code: codes.FailedPrecondition, reason: pb.Reason_REASON_REVISION, metadata: revision.errorMetadata()}
	case errors.As(err, new(*dataset.ChangedError)):
		return verdict{code: codes.FailedPrecondition, reason: pb.Reason_REASON_DATA_CHANGED}
	case errors.As(err, new(*bulkhead.HungError)):
		return verdict{code: codes.Unavailable, reason: pb.Reason_REASON_READ, retry: retryHung}
	case errors.As(err, new(*pipeline.ReadError)):
		return verdict{code: codes.Unavailable, reason: pb.Reason_REASON_READ}
	case errors.As(err, new(*pipeline.RoomError)):
		return verdict{code: codes.ResourceExhausted, reason: pb.Reason_REASON_BUSY, retry: admission.RetryBusy}
	case errors.As(err, &root):
		return verdict{code: codes.NotFound, reason: pb.Reason_REASON_ROOT, metadata: map[string]string{"roots": strings.Join(root.Have, ",")}}
	case errors.As(err, &path):
		return verdict{code: codes.InvalidArgument, reason: pb.Reason_REASON_ROOT, field: "source.path", metadata: map[string]string{"path": path.Path}}
	case errors.As(err, &missing):
		return verdict{code: codes.NotFound, reason: pb.Reason_REASON_DATA_MISSING, metadata: map[string]string{"path": missing.Path}}
	case errors.As(err, &differs):
		return differsVerdict(differs)
	case errors.As(err, &table):
		return verdict{code: codes.FailedPrecondition, reason: pb.Reason_REASON_TABLE, metadata: map[string]string{"table": table.Table}}
	case errors.As(err, &busy) && busy.RetryAfter == 0:
		return verdict{code: codes.ResourceExhausted, reason: pb.Reason_REASON_TOO_LARGE}
	case errors.As(err, &busy):
		return verdict{code: codes.ResourceExhausted, reason: pb.Reason_REASON_BUSY, retry: busy.RetryAfter}
	case errors.As(err, new(*VersionError)):
		return verdict{code: codes.FailedPrecondition, reason: pb.Reason_REASON_VERSION}
	case errors.As(err, new(*ProtocolError)):
		return verdict{code: codes.InvalidArgument, reason: pb.Reason_REASON_PROTOCOL}
	case errors.As(err, new(*StalledError)):
		return verdict{code: codes.DeadlineExceeded, reason: pb.Reason_REASON_STALLED}
	case errors.As(err, new(*SilentError)):
		return verdict{code: codes.Unavailable, reason: pb.Reason_REASON_STALLED}
	}
	return sentinelVerdict(err)
}

func sentinelVerdict(err error) verdict {
	switch {
	case errors.Is(err, errDraining), errors.Is(err, pipeline.ErrClosed), errors.Is(err, dataset.ErrClosed):
		return verdict{code: codes.Unavailable, reason: pb.Reason_REASON_DRAINING}
	case errors.Is(err, pipeline.ErrCancelled), errors.Is(err, context.Canceled):
		return verdict{code: codes.Canceled, reason: pb.Reason_REASON_CANCELLED}
	case errors.Is(err, context.DeadlineExceeded):
		return verdict{code: codes.DeadlineExceeded, reason: pb.Reason_REASON_CANCELLED}
	}
	// What is left comes from the system: a scan that could not read a directory.
	return verdict{code: codes.Unavailable, reason: pb.Reason_REASON_READ}
}

func planVerdict(e *batch.PlanError) verdict {
	v := verdict{code: codes.InvalidArgument, reason: pb.Reason_REASON_PLAN, field: e.Field}
	if e.Field == "name" || strings.HasPrefix(e.Field, "name.") {
		v.reason = pb.Reason_REASON_NAME
	}
	if e.Nearest != "" {
		v.metadata = map[string]string{"nearest": e.Nearest}
	}
	return v
}

func differsVerdict(e *DiffersError) verdict {
	v := verdict{code: codes.FailedPrecondition, reason: pb.Reason_REASON_DATA_DIFFERS}
	if e.Numerics {
		v.reason = pb.Reason_REASON_NUMERICS
	}
	v.metadata = map[string]string{"pinned": e.Pinned, "found": e.Found}
	return v
}

// toStatus makes a gRPC error with details of err. Errors that are status errors already come back as they are.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := err.(interface{ GRPCStatus() *status.Status }); ok { // not one that is wrapped: it would lose the words around it
		return s.GRPCStatus().Err()
	}
	v := judge(err)
	s := status.New(v.code, clipText(err.Error()))
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Domain: "feedwater", Reason: v.reason.String(), Metadata: validMap(v.metadata)}}
	if v.field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: clipText(v.field), Description: clipText(describeError(err))},
		}})
	}
	if v.retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(v.retry)})
	}
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// describeError is an error's text without the field that it is about.
func describeError(err error) string {
	var plan *batch.PlanError
	if errors.As(err, &plan) {
		return plan.Message
	}
	return err.Error()
}

// toFailure makes the answer to a want of err.
func toFailure(err error) *pb.Failure {
	v := judge(err)
	f := &pb.Failure{Code: int32(v.code), Message: clipText(err.Error()), Reason: v.reason}
	if v.reason == pb.Reason_REASON_REVISION {
		f.Metadata = validMap(v.metadata)
	}
	if v.retry > 0 {
		f.RetryAfter = durationpb.New(v.retry)
	}
	var sample *pipeline.SampleError
	if v.reason == pb.Reason_REASON_SAMPLE && errors.As(err, &sample) {
		f.SampleError = fromSampleError(sample)
	}
	return f
}

// retryHung is when a trainer may ask a node again whose storage of the data does not answer.
const retryHung = 2 * time.Second

// clipText is text of an error, which may repeat what a trainer sent: no longer than a header should be.
func clipText(s string) string {
	const most = 2 << 10
	if len(s) > most {
		s = filename.Clip(s, most) + "…"
	}
	return filename.Text(s) // protobuf's strings are UTF-8
}

func validMap(m map[string]string) map[string]string {
	for k, v := range m {
		m[k] = clipText(v)
	}
	return m
}
