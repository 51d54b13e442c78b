package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/timeout"
)

// SilentError says that a process told nothing for so long that it is not waited for. Its connection may have ended
// unnoticed, or it stands still.
type SilentError struct{ After time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("no answer within %s: the machine, the network or the process stands still", e.After)
}

// silenceLimit is how long a process that is asked each interval may tell nothing.
func silenceLimit(interval time.Duration) time.Duration { return max(3*interval, 15*time.Second) }

// Follow asks the process at conn for its state each interval and gives hear what it tells, until ctx ends, the process
// ends the call (io.EOF), the call fails, or the process is silent (*SilentError). After that conn is not to be used
// again: it may be dead.
func Follow(ctx context.Context, conn grpc.ClientConnInterface, interval time.Duration, hear func(*pb.WatchResponse)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	limit := silenceLimit(interval)
	silent := timeout.AfterFunc(limit, func() { end(&SilentError{limit}) })
	defer silent.Stop()
	stream, err := pb.NewFeedClient(conn).Watch(ctx, &pb.WatchRequest{Interval: durationpb.New(interval)})
	for err == nil {
		var state *pb.WatchResponse
		if state, err = stream.Recv(); err == nil {
			silent.Reset(limit)
			hear(state)
		}
	}
	if cause := (*SilentError)(nil); errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return err
}
