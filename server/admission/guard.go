// Package admission decides who may connect to a node, who may call it, and how much each may have. Connections are
// counted and paid for by address, as soon as they are accepted; callers are identified by certificate or token when
// the headers of a call have come; accounts hold what an identity uses. Refusals are an *AccessError or a *BusyError:
// what they mean on the wire, and who is told, is the caller's affair. What is called is unknown here.
//
// Goroutines: none but those of timers.
package admission

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/feedwater-io/feedwater/server/batchmem"
	"github.com/feedwater-io/feedwater/timeout"
)

// Options of a Guard. FailedHandshakes and RefusedConnections are required; the zero value of all others works.
type Options struct {
	// Access says who may ask for what.
	Access Access
	// TLS of connections; nil: plaintext. TLSFiles makes one.
	TLS *tls.Config
	// HostConnections and Connections are how many are open at once, from one address and together. Default 256
	// and 4096.
	HostConnections, Connections int
	// HostShare is how much of one core each address may take for its connections, handshakes and requests. Default
	// 0.05.
	HostShare float64
	// HelloTimeout ends a call whose first message does not come for so long. Default 20 s.
	HelloTimeout time.Duration
	// Memory is what plaintext connections refer to as they write; nil: everything is copied.
	Memory *batchmem.Memory
	// OnRefusal, if set, is told of calls that were turned away, and why. It must not block for long.
	OnRefusal func(c *Caller, method string, err error)
	// FailedHandshakes and RefusedConnections count connections that ended before their first call.
	FailedHandshakes, RefusedConnections prometheus.Counter
	// Log is told of those connections. Default: nobody is.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.HostConnections <= 0 {
		o.HostConnections = standardHostConnections
	}
	if o.Connections <= 0 {
		o.Connections = 4096
	}
	if o.HostShare <= 0 {
		o.HostShare = 0.05
	}
	if o.HelloTimeout <= 0 {
		o.HelloTimeout = 20 * time.Second
	}
	if o.OnRefusal == nil {
		o.OnRefusal = func(*Caller, string, error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Guard decides about connections and calls of one node. Its methods may be called from many goroutines at once.
type Guard struct {
	options  Options
	accounts accounts
	limiter  *connLimiter
}

// New returns a guard that knows nobody yet.
func New(o Options) *Guard {
	o = o.withDefaults()
	return &Guard{
		options: o, accounts: accounts{byKey: map[string]*Account{}},
		limiter: newConnLimiter(o.HostConnections, o.Connections, o.HostShare, newHandshakeLog(o.FailedHandshakes, o.RefusedConnections, o.Log)),
	}
}

// Credentials are those of the node's port. Connections over it are counted and paid for.
func (g *Guard) Credentials() credentials.TransportCredentials {
	if g.options.TLS != nil {
		return &meteredCredentials{credentials.NewTLS(g.options.TLS), g.limiter, nil}
	}
	return &meteredCredentials{insecure.NewCredentials(), g.limiter, g.options.Memory}
}

// LimitListener is l for a gRPC server of nodes: a flood of connections to it costs less than one to l itself.
func (g *Guard) LimitListener(l net.Listener) net.Listener { return newLimitedListener(l, g.limiter) }

// openMethods may be called by anybody: they tell whether the node takes wants, or whether the storage of a root
// answers that the caller can name, and nothing else.
var openMethods = []string{healthpb.Health_Check_FullMethodName, healthpb.Health_Watch_FullMethodName}

// Authorize looks at each call when its headers have come: it finds out who calls, and turns away those who may not.
// The caller is in the context that it returns. Errors are an *AccessError or a *BusyError. It does not wait.
func (g *Guard) Authorize(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := &Caller{}
	if p, ok := peer.FromContext(ctx); ok {
		c.Host = hostOf(p.Addr)
	}
	if err := g.admitCall(ctx, c, info); err != nil {
		g.options.OnRefusal(c, info.FullMethodName, err)
		return ctx, err
	}
	ctx, cancel := context.WithCancelCause(ctx) // the call's own end ends it
	c.firstMessageTimer = timeout.AfterFunc(g.options.HelloTimeout, func() { cancel(errFirstMessageLate); c.account.removeSilentCall() })
	context.AfterFunc(ctx, c.noteFirstMessage) // a call that is over says nothing any more
	return context.WithValue(ctx, callerKey{}, c), nil
}

// admitCall identifies a caller and counts the call in.
func (g *Guard) admitCall(ctx context.Context, c *Caller, info *tap.Info) error {
	if !slices.Contains(openMethods, info.FullMethodName) {
		if err := g.identifyCaller(c, info.Header, certificateOf(ctx)); err != nil {
			return err
		}
	}
	var err error
	if c.account, err = g.accounts.accountOf(c.Identity, c.Host, &g.options.Access); err != nil {
		return err
	}
	if !c.account.calls.Allow() {
		return &BusyError{Message: "too many calls at once", RetryAfter: time.Second}
	}
	return c.account.addSilentCall()
}

// RequireCaller is CallerOf for what needs an identity: a node that asks for one takes no call that Authorize did not
// let in.
func (g *Guard) RequireCaller(ctx context.Context) (*Caller, error) {
	c := CallerOf(ctx)
	if (c == nil || c.Identity == "") && g.options.Access.isRestricted() {
		return nil, &AccessError{Message: "the call shows no identity"}
	}
	return c, nil
}

// CheckWatch refuses identities whose rule does not let them see everybody's jobs.
func (g *Guard) CheckWatch(c *Caller) error {
	if c == nil || len(g.options.Access.Rules) == 0 {
		return nil
	}
	r, err := g.options.Access.ruleOf(c.Identity)
	if err == nil && !r.Watch {
		err = &AccessError{c.Identity, "may not watch this node, whose answer tells of all jobs: its rule needs watch"}
	}
	return err
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
		return shown.identifyCaller(c, clientCAs(g.options.TLS), time.Now())
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
