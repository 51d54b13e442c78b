package comparison

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/watch"
)

const (
	askWithin = 10 * time.Second // that a node may take to say what it serves: it looks at no data for that
	askTimes  = 6                // of one that hangs up
)

// AskRoots asks all nodes what they serve, so that nothing is waited for where one cannot be reached, and returns the
// roots that the first one names; none where it does not say. An answer may take as long as within, ten seconds at
// most.
func AskRoots(ctx context.Context, nodes []string, within time.Duration, dialing node.DialOptions) ([]string, error) {
	within = min(within, askWithin)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	roots, errs := make([][]string, len(nodes)), make([]error, len(nodes))
	var asking sync.WaitGroup
	for i, addr := range nodes {
		asking.Go(func() { roots[i], errs[i] = askNode(ctx, addr, within, dialing) })
	}
	asking.Wait()
	return roots[0], errors.Join(errs...)
}

// askNode asks a node what it serves: its answer to a plan that names no data. A node need not say so, but has to
// answer. Where it hangs up, what it says of why may get lost on the way: it is asked again.
func askNode(ctx context.Context, addr string, within time.Duration, dialing node.DialOptions) ([]string, error) {
	var err error
	for range askTimes {
		err = openNothing(ctx, addr, dialing)
		if !strings.Contains(fmt.Sprint(err), syscall.ECONNRESET.Error()) { // gRPC keeps no more of it than its words
			break
		}
	}
	if undialled := (dialError{}); errors.As(err, &undialled) {
		return nil, undialled.error
	}
	switch answer := status.Convert(err); answer.Code() {
	case codes.OK, codes.NotFound, codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied:
		return rootsOf(answer), nil
	case codes.DeadlineExceeded:
		return nil, fmt.Errorf("%s does not answer within %s", addr, within)
	}
	return nil, fmt.Errorf("%s does not answer: %s", addr, watch.Plain(err.Error()))
}

// openNothing asks a node for a plan that names no data, over a connection of its own.
func openNothing(ctx context.Context, addr string, dialing node.DialOptions) error {
	n, err := node.Dial(addr, dialing)
	if err != nil {
		return dialError{err}
	}
	defer func() { _ = n.Close() }()
	_, err = n.Open(ctx, &pb.OpenRequest{Protocol: pb.Protocol, Plan: "{}", Job: jobName})
	return err
}

// dialError says why a node cannot even be dialled.
type dialError struct{ error }

// rootsOf are the roots that a node's answer names.
func rootsOf(answer *status.Status) []string {
	for _, d := range answer.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.Metadata["roots"] != "" {
			return strings.Split(info.Metadata["roots"], ",")
		}
	}
	return nil
}
