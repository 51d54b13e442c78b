package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/timeout"
)

// caller is who makes a call over the wire. It is made when the call's headers have come, before anything else of it is read. Calls from
// within the process have none.
type caller struct {
	identity string // empty where nobody has to say who he is
	host     string // address without port
	account  *account
	prompt   *timeout.Timer // ends a call whose first message does not come
}

type callerKey struct{}

// callerOf is who made the call that a context belongs to; nil within the process.
func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// name is the caller's identity; empty within the process, and where nobody has to say who he is.
func (c *caller) name() string {
	if c == nil {
		return ""
	}
	return c.identity
}

// admitted is callerOf for what needs an identity: a node that asks for one takes no call that did not pass its door.
func (s *Server) admitted(ctx context.Context) (*caller, error) {
	c := callerOf(ctx)
	if (c == nil || c.identity == "") && s.options.Access.restricted() {
		return nil, &AccessError{Message: "the call shows no identity"}
	}
	return c, nil
}

// enter counts one more stream of the caller's in; leave counts it out.
func (c *caller) enter() error { return c.of().enter() }
func (c *caller) leave()       { c.of().leave() }

// of is the caller's account; nil within the process.
func (c *caller) of() *account {
	if c == nil {
		return nil
	}
	return c.account
}

// budget is what all streams of the caller may hold together.
func (c *caller) budget() *batchmem.Budget {
	if c == nil {
		return nil
	}
	return &c.account.budget
}

// openMethods may be called by anybody: they tell whether the node takes wants, or whether the storage of a root answers that the caller can
// name, and nothing else.
var openMethods = []string{healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName}

// door looks at each call when its headers have come: it finds out who calls, and turns away those who may not. It must not wait.
func (s *Server) door(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &caller{}
	if p, ok := peer.FromContext(ctx); ok {
		c.host = hostOf(p.Addr)
	}
	var err error
	if !slices.Contains(openMethods, info.FullMethodName) {
		err = s.identify(c, info.Header, certified(ctx))
	}
	if err == nil {
		c.account, err = s.accounts.of(c, &s.options.Access)
	}
	if err == nil && !c.account.calls.Allow() {
		err = &BusyError{Message: "too many calls at once", RetryAfter: time.Second}
	}
	if err == nil {
		err = c.account.await()
	}
	if err != nil {
		s.audit.refused(c, info.FullMethodName, err)
		return ctx, toStatus(err)
	}
	ctx, cancel := context.WithCancelCause(ctx) // the call's own end ends it
	c.prompt = timeout.AfterFunc(s.options.HelloTimeout, func() { cancel(errTardy); c.account.heard() })
	context.AfterFunc(ctx, c.started) // a call that is over says nothing any more
	return context.WithValue(ctx, callerKey{}, c), nil
}

// errTardy ends calls that say nothing.
var errTardy = status.Error(codes.DeadlineExceeded, "the call's first message did not come in time")

// started says that a call's first message is there, or will not come. It does nothing when it is told so again.
func (c *caller) started() {
	if c != nil && c.prompt.Stop() {
		c.account.heard()
	}
}

// identify finds out who calls, by the headers of the call and the certificate of its connection, if it has one with a name.
func (s *Server) identify(c *caller, header metadata.MD, shown *certificate) error {
	a := &s.options.Access
	if !a.restricted() {
		return nil
	}
	if len(header["authorization"]) > 0 && a.Tokens != nil {
		return a.byToken(c, header)
	}
	if shown != nil && a.Certificates {
		return shown.identify(c, s.clientCAs(), time.Now())
	}
	switch {
	case a.Tokens == nil:
		return &AccessError{Message: "this node wants a client certificate with a name: its CA is that of --client-ca"}
	case a.Certificates:
		return &AccessError{Message: "this node wants a client certificate or a token, and there is neither"}
	}
	return &AccessError{Message: "this node wants a token, and there is none"}
}

func (a *Access) byToken(c *caller, header metadata.MD) error {
	secret, ok := strings.CutPrefix(header["authorization"][0], "Bearer ")
	if !ok || len(header["authorization"]) != 1 {
		return &AccessError{Message: `the authorization is not one "Bearer TOKEN"`}
	}
	if c.identity, ok = a.Tokens.Identity(secret); !ok {
		return &AccessError{Message: "this node does not know that token"}
	}
	return nil
}

// unary notes that a call's only request has come.
func unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	callerOf(ctx).started()
	return handle(ctx, request)
}

// streaming notes when a stream's first request comes, and that its connection moves when it sends.
func streaming(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	c := callerOf(stream.Context())
	defer c.started()
	conn, _ := carrier(stream.Context())
	return handle(server, &prompted{stream, c, conn})
}

// prompted is a stream whose first request has to come in time.
type prompted struct {
	grpc.ServerStream
	caller *caller
	conn   *counted
}

// SendMsg implements grpc.ServerStream.
func (p *prompted) SendMsg(m any) error {
	err := p.ServerStream.SendMsg(m)
	if err == nil {
		p.conn.move()
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (p *prompted) RecvMsg(m any) error {
	err := p.ServerStream.RecvMsg(m)
	p.caller.started()
	if cause := context.Cause(p.Context()); err != nil && cause == errTardy { //nolint:errorlint // this very one
		return errTardy
	}
	return err
}

// brief is text from outside, fit for a message.
func brief(s string) string {
	const most = 200
	if len(s) > most {
		s = fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}
