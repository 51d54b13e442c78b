package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/batch"
	"github.com/feedwater-io/feedwater/grpcerror"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// FromStatus makes an error of this package from what a call returned. What has no Reason is trouble on the way: it is
// told in plain words, and wraps what came. An error that is no call's comes back as it is.
func FromStatus(err error) error {
	if told := (*callError)(nil); errors.As(err, &told) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return err
	}
	reason, metadata, fields := detailsOf(s)
	if len(fields) > 0 && (reason == pb.Reason_REASON_PLAN || reason == pb.Reason_REASON_NAME) {
		return &batch.PlanError{Field: fields[0].Field, Message: fields[0].Description, Nearest: metadata["nearest"]}
	}
	if e := fromReason(reason, s.Message(), metadata); e != nil {
		return e
	}
	if s.Code() == codes.Unauthenticated || s.Code() == codes.PermissionDenied {
		return &AccessError{s.Message()}
	}
	if s.Code() == codes.Unimplemented && strings.Contains(s.Message(), "unknown service") {
		return &VersionError{"it does not speak feedwater.v1: another version of Feedwater, or something else that speaks gRPC"}
	}
	return &callError{cause: err, message: describeCall(s.Message())}
}

// TellScaler tells a scaler that a node is waited for, by opening a plan there. The error says why it has not heard.
func TellScaler(ctx context.Context, scaler Node, r *pb.OpenRequest) error {
	_, err := scaler.Open(ctx, r)
	if err == nil {
		return errors.New("it is a node and not a scaler")
	}
	if s, ok := status.FromError(err); ok {
		if reason, _, _ := detailsOf(s); reason == pb.Reason_REASON_SCALER {
			return nil
		}
	}
	return FromStatus(err)
}

// detailsOf is what a node tells beside the words of an error.
func detailsOf(s *status.Status) (reason pb.Reason, metadata map[string]string, fields []*errdetails.BadRequest_FieldViolation) {
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason, metadata = pb.Reason(pb.Reason_value[d.Reason]), d.Metadata
		case *errdetails.BadRequest:
			fields = d.FieldViolations
		}
	}
	return reason, metadata, fields
}

// callError is what became of a call to a node, in plain words. Its cause has gRPC's status.
type callError struct {
	cause   error
	message string
}

func (e *callError) Error() string { return e.message }

func (e *callError) Unwrap() error { return e.cause }

// describeCall says why a call failed, and what to do where that is known: of the connection to the node, and not of
// one that the node wants to make.
func describeCall(message string) string {
	switch {
	case !strings.Contains(message, "connection error: "):
	case strings.Contains(message, "error reading server preface: EOF"),
		strings.Contains(message, "error reading server preface: read"):
		return "the node hung up at once: if it serves TLS, pass tls="
	case strings.Contains(message, "HTTP/1.1 header"):
		return "it speaks HTTP: is this the port of --http, not of --listen?"
	case strings.Contains(message, "connection refused"):
		return "connection refused: nothing listens there. A node listens on 127.0.0.1:7070, for its own machine alone, " +
			"unless its --listen says otherwise"
	case strings.Contains(message, "i/o timeout"), strings.Contains(message, "connection timed out"):
		return "no answer at all: is the address right, and does no firewall stand before it? (" + grpcerror.Cause(message) + ")"
	}
	return grpcerror.Cause(message)
}

func fromReason(r pb.Reason, message string, metadata map[string]string) error {
	switch r {
	case pb.Reason_REASON_PLAN:
		return &batch.PlanError{Field: "plan", Message: message}
	case pb.Reason_REASON_NAME:
		return &batch.PlanError{Field: "name", Message: message}
	case pb.Reason_REASON_ROOT, pb.Reason_REASON_DATA_MISSING, pb.Reason_REASON_DATA_DIFFERS, pb.Reason_REASON_DATA_CHANGED:
		return &DataError{Path: metadata["path"], Message: message, Differs: r == pb.Reason_REASON_DATA_DIFFERS}
	case pb.Reason_REASON_TABLE:
		return &TableError{Table: metadata["table"], Message: message}
	case pb.Reason_REASON_NUMERICS:
		return &NumericsError{Pinned: metadata["pinned"], Found: metadata["found"], Message: message}
	case pb.Reason_REASON_REVISION:
		return &RevisionError{
			Unit: metadata["unit"], Pinned: numberOf(metadata["pinned"]), Found: numberOf(metadata["found"]),
			PinnedBuild: metadata["pinned_build"], Build: metadata["build"], Message: message,
		}
	case pb.Reason_REASON_VERSION:
		return &VersionError{message}
	}
	return nil
}

// numberOf is a revision in metadata; 0 if it is none.
func numberOf(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// FromFailure makes an error of what a node says of one want.
func FromFailure(f *pb.Failure, addr string) error {
	if f.SampleError != nil && codes.Code(f.Code) == codes.DataLoss {
		return &SampleError{SampleError: f.SampleError, Node: addr}
	}
	if e := fromReason(f.Reason, f.Message, f.Metadata); e != nil {
		return e
	}
	return fmt.Errorf("%s: %s", codes.Code(f.Code), f.Message)
}
