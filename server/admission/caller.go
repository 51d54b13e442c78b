package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/filename"
	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/timeout"
)

// Caller is who makes a call over the wire. It is made when the call's headers have come, before anything else of it is
// read. Calls from within the process have none.
type Caller struct {
	Identity          string // empty where nobody has to say who he is
	Host              string // address without port
	account           *Account
	firstMessageTimer *timeout.Timer // ends a call whose first message does not come
}

type callerKey struct{}

// CallerOf is who made the call that a context belongs to; nil within the process.
func CallerOf(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}

// Name is the caller's identity; empty within the process, and where nobody has to say who he is.
func (c *Caller) Name() string {
	if c == nil {
		return ""
	}
	return c.Identity
}

// Account is the caller's account; nil within the process.
func (c *Caller) Account() *Account {
	if c == nil {
		return nil
	}
	return c.account
}

// Budget is what all streams of the caller may hold together.
func (c *Caller) Budget() *batchmem.Budget {
	if c == nil {
		return nil
	}
	return &c.account.budget
}

// CheckRoot refuses roots that an identity may not read. Of those the answer does not tell whether the node has them.
func (c *Caller) CheckRoot(root string, have []string) error {
	if c == nil || c.account.rule.mayRead(root) {
		return nil
	}
	allowed := "it may read none"
	if names := c.AllowedRoots(have); len(names) > 0 {
		allowed = "it may read " + strings.Join(names, ", ")
	}
	return &AccessError{c.Identity, fmt.Sprintf("may not read root %q here; %s", filename.Brief(root), allowed)}
}

// AllowedRoots are those of have that a caller may read.
func (c *Caller) AllowedRoots(have []string) []string {
	if c == nil {
		return have
	}
	return slices.DeleteFunc(slices.Clone(have), func(name string) bool { return !c.account.rule.mayRead(name) })
}

// errFirstMessageLate ends calls that say nothing.
var errFirstMessageLate = status.Error(codes.DeadlineExceeded, "the call's first message did not come in time")

// noteFirstMessage says that a call's first message is there, or will not come. It does nothing when it is told so
// again.
func (c *Caller) noteFirstMessage() {
	if c != nil && c.firstMessageTimer.Stop() {
		c.account.removeSilentCall()
	}
}

// InterceptUnary notes that a call's only request has come.
func InterceptUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	CallerOf(ctx).noteFirstMessage()
	return handle(ctx, request)
}

// InterceptStream notes when a stream's first request comes, and that its connection moves when it sends.
func InterceptStream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := CallerOf(stream.Context())
	defer c.noteFirstMessage()
	conn := ConnOf(stream.Context())
	return handle(server, &meteredStream{stream, c, conn})
}

// meteredStream is a stream whose first request has to come in time.
type meteredStream struct {
	grpc.ServerStream
	caller *Caller
	conn   *MeteredConn
}

// SendMsg implements grpc.ServerStream.
func (p *meteredStream) SendMsg(m any) error {
	err := p.ServerStream.SendMsg(m)
	if err == nil {
		p.conn.noteSend()
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (p *meteredStream) RecvMsg(m any) error {
	err := p.ServerStream.RecvMsg(m)
	p.caller.noteFirstMessage()
	if cause := context.Cause(p.Context()); err != nil && cause == errFirstMessageLate { //nolint:errorlint // this very one
		return errFirstMessageLate
	}
	return err
}
