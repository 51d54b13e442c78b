package node

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/feedwater-io/feedwater/client/membership"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// DialOptions say how to reach a node. The zero value reaches nodes on this machine.
type DialOptions struct {
	// TLS of the connection; nil: plaintext.
	TLS *tls.Config
	// Files, if set and TLS is not, are what TLS is made of, anew for each connection.
	Files *TLSFiles
	// TokenFile, if set, holds a token, which is shown at each call. It goes over TLS, or stays on this machine.
	TokenFile string
	// Insecure allows plaintext to other machines.
	Insecure bool
	// PieceBytes is the size of the pieces that batches come in. 0: the node's choice, 1 MiB.
	PieceBytes uint32
	// Connect makes the connection; nil: TCP, or a unix socket for addresses that begin with "unix:".
	Connect func(ctx context.Context, addr string) (net.Conn, error)
}

const (
	window         = 16 << 20        // bytes on their way, of a stream and of its connection
	connectTimeout = 5 * time.Second // of one attempt
	maxMessage     = 64 << 20        // of an answer to Open or Replay; pieces of batches are far smaller
)

// Dial returns the node at addr, "host:port" or "unix:path". It does not connect yet. Errors are *AddressError.
func Dial(addr string, o DialOptions) (Node, error) {
	if o.Connect == nil {
		if err := o.checkAddress(addr); err != nil {
			return nil, err
		}
	}
	target := addr
	if !strings.HasPrefix(addr, "unix:") {
		target = "passthrough:///" + addr
	}
	return &remote{addr: addr, target: target, options: o}, nil
}

// GRPC are options of gRPC for a connection of one's own to addr: encrypted, with the token, and known to be dead as
// soon as those of a Fleet are. Errors are *AddressError.
func (o DialOptions) GRPC(addr string) ([]grpc.DialOption, error) {
	if err := o.checkAddress(addr); err != nil {
		return nil, err
	}
	r := remote{addr: addr, options: o}
	security := r.newCredentials()
	if security == nil {
		security = insecure.NewCredentials()
	}
	return append(o.tokenOptions(), grpc.WithTransportCredentials(security), grpc.WithKeepaliveParams(alive), grpc.WithNoProxy()), nil
}

// alive shows a dead link after 10 s without data, 2 s with unacknowledged data: gRPC makes Timeout the socket's
// TCP_USER_TIMEOUT too.
var alive = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second, PermitWithoutStream: true}

// tokenOptions shows what TokenFile holds, if it is set.
func (o *DialOptions) tokenOptions() []grpc.DialOption {
	if o.TokenFile == "" {
		return nil
	}
	return []grpc.DialOption{grpc.WithPerRPCCredentials(bearerToken{o.TokenFile})}
}

// checkAddress refuses what is no address. It keeps plaintext on this machine, unless the network is said to be one's
// own, and tokens always.
func (o *DialOptions) checkAddress(addr string) error {
	if err := membership.CheckAddress(addr); err != nil {
		return ToAddressError(err)
	}
	switch {
	case o.TLS != nil || o.Files != nil || isLocal(addr):
		return nil
	case o.TokenFile != "":
		return &AddressError{addr, "is another machine, and a token goes over TLS only: pass tls= (in Go DialOptions.Files), or no token"}
	case !o.Insecure:
		return &AddressError{addr, "is another machine, and the connection would not be encrypted: pass tls= (in Go DialOptions.Files); insecure=True, or FEEDWATER_INSECURE=1 (in Go DialOptions.Insecure), says that the network is yours"}
	}
	return nil
}

// newCredentials is the TLS of a connection; nil: plaintext.
func (r *remote) newCredentials() credentials.TransportCredentials {
	switch {
	case r.options.TLS != nil:
		return newFileCredentials(func(context.Context) (*tls.Config, error) { return r.options.TLS, nil }, &r.failed)
	case r.options.Files != nil:
		return newFileCredentials(r.options.Files.newConfig, &r.failed)
	}
	return nil
}

// isLocal reports whether nothing sent to addr leaves this machine.
func isLocal(addr string) bool {
	if strings.HasPrefix(addr, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// remote is a node reached over gRPC. Each Open makes a connection of its own, and closes the one before: nothing that
// went wrong on one lives on, at either end.
type remote struct {
	addr, target string
	options      DialOptions

	// failed is why the latest connection came to nothing, if one side did not trust the other.
	failed atomic.Pointer[AccessError]

	mu   sync.Mutex
	conn *grpc.ClientConn
}

// Addr implements Node.
func (r *remote) Addr() string { return r.addr }

// Open implements Node.
func (r *remote) Open(ctx context.Context, request *pb.OpenRequest) (*pb.OpenResponse, error) {
	conn, err := grpc.NewClient(r.target, r.dialOptions()...)
	if err != nil {
		return nil, err
	}
	if err := r.replaceConn(conn); err != nil {
		return nil, err
	}
	r.failed.Store(nil)
	opened, err := pb.NewFeedClient(conn).Open(ctx, request)
	if err == nil {
		return opened, nil
	}
	_ = r.replaceConn(nil) // gRPC would go on dialing, to a timetable of its own
	if denied := r.failed.Load(); denied != nil {
		return nil, denied
	}
	return nil, err
}

// Replay implements Node.
func (r *remote) Replay(ctx context.Context, request *pb.ReplayRequest) (*pb.ReplayResponse, error) {
	feed, err := r.feedClient()
	if err != nil {
		return nil, err
	}
	return feed.Replay(ctx, request)
}

// Progress implements Progressor.
func (r *remote) Progress(ctx context.Context, request *pb.ProgressRequest) (*pb.ProgressResponse, error) {
	feed, err := r.feedClient()
	if err != nil {
		return nil, err
	}
	return feed.Progress(ctx, request)
}

// Fetch implements Node.
func (r *remote) Fetch(ctx context.Context, start *pb.Start, notice func(*pb.Notice)) (Stream, error) {
	feed, err := r.feedClient()
	if err != nil {
		return nil, err
	}
	if start.PieceBytes == 0 {
		start.PieceBytes = r.options.PieceBytes
	}
	s, err := newStream(ctx, feed, start, notice)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close implements Node.
func (r *remote) Close() error { return r.replaceConn(nil) }

func (r *remote) feedClient() (pb.FeedClient, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil, status.Errorf(codes.Unavailable, "node %s is not connected", r.addr)
	}
	return pb.NewFeedClient(r.conn), nil
}

func (r *remote) replaceConn(conn *grpc.ClientConn) error {
	r.mu.Lock()
	old := r.conn
	r.conn = conn
	r.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

func (r *remote) dialOptions() []grpc.DialOption {
	f := &frames{}
	security, buffer := newScatterCredentials(insecure.NewCredentials(), f)
	if secure := r.newCredentials(); secure != nil {
		security, buffer = secure, readBuffer
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithReadBufferSize(buffer),
		experimental.WithBufferPool(f),
		// Fixed: gRPC's estimate of the link stops growing after one lucky sample, at a few hundred KiB, and pings all
		// the while. Setting one alone would leave the other at 64 KiB.
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(alive),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	}
	options = append(options, r.options.tokenOptions()...)
	if r.options.Connect != nil {
		options = append(options, grpc.WithContextDialer(r.options.Connect))
	}
	return options
}

// WithServerName is o for nodes whose certificates are made out to serverName, unless o says to what.
func (o DialOptions) WithServerName(serverName string) DialOptions {
	switch {
	case serverName == "":
	case o.TLS != nil && o.TLS.ServerName == "":
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = serverName
	case o.TLS == nil && o.Files != nil && o.Files.ServerName == "":
		files := *o.Files
		files.ServerName = serverName
		o.Files = &files
	}
	return o
}
