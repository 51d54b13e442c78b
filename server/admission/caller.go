package admission

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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

// openMethods may be called by anybody: they tell whether the node takes wants, or whether the storage of a root
// answers that the caller can name, and nothing else.
var openMethods = []string{healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName}

// errFirstMessageLate ends calls that say nothing.
var errFirstMessageLate = status.Error(codes.DeadlineExceeded, "the call's first message did not come in time")

// noteFirstMessage says that a call's first message is there, or will not come. It does nothing when it is told so
// again.
func (c *Caller) noteFirstMessage() {
	if c != nil && c.firstMessageTimer.Stop() {
		c.account.removeSilentCall()
	}
}

// identifyCaller finds out who calls, by the headers of the call and the certificate of its connection, if it has one
// with a name.
func (g *Guard) identifyCaller(c *Caller, header metadata.MD, shown *clientCertificate) error {
	a := &g.options.Access
	if !a.isRestricted() {
		return nil
	}
	if len(header["authorization"]) > 0 && a.Tokens != nil {
		return a.identifyByToken(c, header)
	}
	if shown != nil && a.Certificates {
		return shown.identifyCaller(c, g.clientCAs(), time.Now())
	}
	switch {
	case a.Tokens == nil:
		return &AccessError{Message: "this node wants a client certificate with a name: its CA is that of --client-ca"}
	case a.Certificates:
		return &AccessError{Message: "this node wants a client certificate or a token, and there is neither"}
	}
	return &AccessError{Message: "this node wants a token, and there is none"}
}

func (a *Access) identifyByToken(c *Caller, header metadata.MD) error {
	secret, ok := strings.CutPrefix(header["authorization"][0], "Bearer ")
	if !ok || len(header["authorization"]) != 1 {
		return &AccessError{Message: `the authorization is not one "Bearer TOKEN"`}
	}
	if c.Identity, ok = a.Tokens.Identity(secret); !ok {
		return &AccessError{Message: "this node does not know that token"}
	}
	return nil
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
