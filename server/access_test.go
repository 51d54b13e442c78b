package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/audit"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// guarded is a node at a port of this machine.
type guarded struct {
	*server.Server
	t      testing.TB
	engine *servertest.Engine
	addr   string
	ca     *servertest.Authority
	cert   servertest.Pair
	tokens string

	mu    sync.Mutex
	lines []audit.Line
}

const (
	secretA  = "aaaa0000111122223333"
	secretA2 = "aaaa4444555566667777"
	secretB  = "bbbb0000111122223333"
)

// guard starts a node with TLS, that takes certificates and tokens as access says.
func guard(t testing.TB, e *servertest.Engine, o server.Options) *guarded {
	t.Helper()
	g := &guarded{t: t, engine: e, ca: servertest.NewAuthority(t, "ca"), tokens: filepath.Join(t.TempDir(), "tokens")}
	g.cert = g.ca.Issue("node", time.Hour)
	g.write("# who and what\n\nteam-a " + secretA + "\nteam-a " + secretA2 + "\nteam-b\t" + secretB + "\n")
	files := admission.TLSFiles{Cert: g.cert.Cert, Key: g.cert.Key, ClientCA: g.ca.File, Optional: o.Access.Tokens == nil}
	config, err := files.Config(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o.TLS = config
	if o.Access.Tokens, err = admission.ReadTokens(g.tokens, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	o.Access.Certificates = true
	return g.serve(o)
}

// unguarded starts a node that asks nobody for anything, without TLS.
func unguarded(t testing.TB, e *servertest.Engine, o server.Options) *guarded {
	t.Helper()
	return (&guarded{t: t, engine: e}).serve(o)
}

func (g *guarded) serve(o server.Options) *guarded {
	g.t.Helper()
	o.Engine = g.engine
	if o.Roots == nil {
		o.Roots = map[string]string{"photos": g.t.TempDir(), "other": g.t.TempDir()}
	}
	o.Audit = func(l audit.Line) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lines = append(g.lines, l)
	}
	g.Server = server.New(o)
	s := grpc.NewServer(g.GRPCOptions()...)
	g.Register(s)
	healthpb.RegisterHealthServer(s, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	g.t.Cleanup(func() {
		s.Stop()
		g.Close()
		g.engine.Close()
		<-served
	})
	return g
}

func (g *guarded) write(tokens string) {
	g.t.Helper()
	if err := os.WriteFile(g.tokens, []byte(tokens), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// audited are the lines so far.
func (g *guarded) audited(event string) []audit.Line {
	g.mu.Lock()
	defer g.mu.Unlock()
	var some []audit.Line
	for _, l := range g.lines {
		if l.Event == event {
			some = append(some, l)
		}
	}
	return some
}

// shown is what a trainer has.
type shown struct {
	token string
	pair  *servertest.Pair
}

func (g *guarded) dial(s shown, options ...grpc.DialOption) *grpc.ClientConn {
	g.t.Helper()
	security := insecure.NewCredentials()
	if g.ca != nil {
		c := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
		if s.pair != nil {
			pair, err := tls.LoadX509KeyPair(s.pair.Cert, s.pair.Key)
			if err != nil {
				g.t.Fatal(err)
			}
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		security = credentials.NewTLS(c)
	}
	c, err := grpc.NewClient("passthrough:///"+g.addr, append(options, grpc.WithTransportCredentials(security))...)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	return c
}

func (s shown) context(t testing.TB) context.Context {
	if s.token == "" {
		return t.Context()
	}
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", s.token)
}

// tryOpen opens a plan of a root.
func (g *guarded) tryOpen(s shown, root string) error {
	g.t.Helper()
	_, err := pb.NewFeedClient(g.dial(s)).Open(s.context(g.t), &pb.OpenRequest{Protocol: pb.Protocol, Plan: fmt.Sprintf(`{"source": {"root": %q}}`, root)})
	return err
}

func TestWhoMayComeIn(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}}, "trainer": {Roots: []string{"*"}}, "nothing": {},
	}}})
	foreign := servertest.NewAuthority(t, "foreign")
	trainer, stranger := g.ca.Issue("trainer", time.Hour), g.ca.Issue("stranger", time.Hour)
	empty := g.ca.Issue("", time.Hour)
	old, alien := g.ca.Issue("trainer", -time.Minute), foreign.Issue("trainer", time.Hour)
	for name, c := range map[string]struct {
		shown
		root string
		code codes.Code
		says string
	}{
		"token":                          {shown{token: "Bearer " + secretA}, "photos", codes.OK, ""},
		"second token":                   {shown{token: "Bearer " + secretA2}, "photos", codes.OK, ""},
		"certificate":                    {shown{pair: &trainer}, "other", codes.OK, ""},
		"token beside a certificate":     {shown{token: "Bearer " + secretA, pair: &trainer}, "other", codes.PermissionDenied, `"team-a" may not read root "other" here; it may read photos`},
		"another root":                   {shown{token: "Bearer " + secretA}, "other", codes.PermissionDenied, "may not read"},
		"a root that is not there":       {shown{token: "Bearer " + secretA}, "secret", codes.PermissionDenied, `root "secret" here; it may read photos`},
		"no rule":                        {shown{token: "Bearer " + secretB}, "photos", codes.PermissionDenied, `"team-b" has no rule`},
		"no rule for a certificate":      {shown{pair: &stranger}, "photos", codes.PermissionDenied, `"stranger" has no rule`},
		"nothing":                        {shown{}, "photos", codes.Unauthenticated, "a client certificate or a token"},
		"wrong token":                    {shown{token: "Bearer " + secretA + "x"}, "photos", codes.Unauthenticated, "does not know that token"},
		"part of a token":                {shown{token: "Bearer " + secretA[:19]}, "photos", codes.Unauthenticated, "does not know that token"},
		"wrong token with a certificate": {shown{token: "Bearer nonsense", pair: &trainer}, "other", codes.Unauthenticated, "does not know that token"},
		"no bearer":                      {shown{token: "Basic " + secretA}, "photos", codes.Unauthenticated, "is not one"},
		"name in place of token":         {shown{token: "Bearer team-a"}, "photos", codes.Unauthenticated, "does not know"},
		"certificate without a name":     {shown{pair: &empty}, "photos", codes.Unauthenticated, "a client certificate or a token"},
		"expired certificate":            {shown{pair: &old}, "other", codes.Unavailable, ""},
		"foreign certificate":            {shown{pair: &alien}, "other", codes.Unavailable, ""},
	} {
		err := g.tryOpen(c.shown, c.root)
		if code := status.Code(err); code != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s, %q", name, err, c.code, c.says)
		}
	}
	if s := g.engine.Open(); s > 2 {
		t.Errorf("%d snapshots: somebody who was refused had a folder scanned", s)
	}
	for _, method := range []string{"fetch", "replay"} { // each by itself: there is no call that leaves it to another one
		feed := pb.NewFeedClient(g.dial(shown{}))
		var err error
		if method == "replay" {
			_, err = feed.Replay(t.Context(), &pb.ReplayRequest{Plan: plan, Name: rangeOf(0, 0, 1)})
		} else if s, e := feed.Fetch(t.Context()); e == nil {
			_, err = s.Recv()
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s without anything: %v", method, err)
		}
	}
	if _, err := healthpb.NewHealthClient(g.dial(shown{})).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	if _, err := g.Open(t.Context(), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call that did not come by the door: %v", err)
	}
	if n := len(g.audited("refused")); n < 5 {
		t.Errorf("%d refusals are told of", n)
	}
	for _, l := range g.audited("refused") {
		if strings.Contains(fmt.Sprint(l), secretA[:10]) {
			t.Errorf("a line holds part of a token: %v", l)
		}
	}
}

// A plan without a root, by the fingerprint of data that somebody else may read, is no way round.
func TestFingerprintIsNoWayRound(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}}, "team-b": {Roots: []string{"empty"}},
	}}, Roots: map[string]string{"photos": t.TempDir(), "empty": t.TempDir() + "/none"}})
	a, b := shown{token: "Bearer " + secretA}, shown{token: "Bearer " + secretB}
	opened, err := pb.NewFeedClient(g.dial(a)).Open(a.context(t), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	by := &pb.OpenRequest{Protocol: pb.Protocol, Plan: fmt.Sprintf(`{"source": {"fingerprint": %q}}`, opened.Fingerprint)}
	if _, err := pb.NewFeedClient(g.dial(a)).Open(a.context(t), by); err != nil {
		t.Errorf("whoever may read it: %v", err)
	}
	_, err = pb.NewFeedClient(g.dial(b)).Open(b.context(t), by)
	if status.Code(err) != codes.NotFound || strings.Contains(err.Error(), "photos") {
		t.Errorf("whoever may not: %v", err)
	}
}

func TestTokensAreReadAgain(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{})
	if err := g.tryOpen(shown{token: "Bearer " + secretB}, "photos"); err != nil {
		t.Fatal(err)
	}
	g.write("team-c cccc0000111122223333\n")
	if err := g.tryOpen(shown{token: "Bearer " + secretB}, "photos"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a token that is gone: %v", err)
	}
	if err := g.tryOpen(shown{token: "Bearer cccc0000111122223333"}, "photos"); err != nil {
		t.Errorf("a new token: %v", err)
	}
	g.write("team-d short\n") // half written, or wrong: what was there stays
	if err := g.tryOpen(shown{token: "Bearer cccc0000111122223333"}, "photos"); err != nil {
		t.Errorf("after the file went wrong: %v", err)
	}
}

func TestReadTokensRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	for text, says := range map[string]string{
		"":                                "holds no token",
		"# nothing\n":                     "holds no token",
		"team-a\n":                        "line 1 is not IDENTITY TOKEN",
		"\nteam-a a b\n":                  "line 2 is not IDENTITY TOKEN",
		"team-a short\n":                  "line 1: the token has 5 characters",
		"a " + secretA + "\nb " + secretA: "line 2: a and b have the same token",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := admission.ReadTokens(file, nil)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "short\n") || strings.Contains(err.Error(), secretA) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := admission.ReadTokens(file+".none", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// serial is the certificate that a new connection meets.
func (g *guarded) serial() string {
	g.t.Helper()
	c, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	if v := c.ConnectionState(); v.Version != tls.VersionTLS13 || v.NegotiatedProtocol != "h2" {
		g.t.Errorf("TLS %x, %q", v.Version, v.NegotiatedProtocol)
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// A long job goes on over the swap of a certificate, and connections made after it get the new one.
func TestCertificateSwapUnderLoad(t *testing.T) {
	g := guard(t, &servertest.Engine{Height: 32, Width: 32}, server.Options{})
	job := g.beside(shown{token: "Bearer " + secretA})
	first := g.serial()
	for swap := range 3 {
		g.ca.Renew(g.cert, "node", time.Hour)
		second := g.serial()
		if second == first {
			t.Fatalf("swap %d: a new connection gets the old certificate", swap)
		}
		first = second
		if err := os.WriteFile(g.cert.Key, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.serial(); got != second {
			t.Errorf("swap %d: files that do not go together were used", swap)
		}
		job.batches(5)
	}
	if _, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
}

func TestRulesBound(t *testing.T) {
	hold := &servertest.Engine{Delay: hang}
	g := guard(t, hold, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}, Streams: 2, Wants: 3, Bytes: 1 << 20},
		"team-b": {Roots: []string{"photos"}, CallsPerSecond: 0.001},
	}}})
	a := shown{token: "Bearer " + secretA}
	open := func() *trainer {
		s, err := pb.NewFeedClient(g.dial(a)).Fetch(a.context(t))
		if err != nil {
			t.Fatal(err)
		}
		tr := &trainer{t: t, stream: s, cancel: func() {}}
		tr.start(plan)
		return tr
	}
	one, two := open(), open()
	for id := range uint64(3) {
		one.want(id+1, rangeOf(9, 0, 8))
	}
	until(t, "wants are not taken", func() bool { return hold.Making() == 3 })
	two.want(1, rangeOf(9, 0, 8))
	if f := two.mustNext().failure; f.GetReason() != pb.Reason_REASON_BUSY || !strings.Contains(f.Message, "this identity") || f.RetryAfter == nil {
		t.Errorf("a fourth want, on another stream: %v", f)
	}
	three := open()
	if _, err := three.next(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "2 streams are open") {
		t.Errorf("a third stream: %v", err)
	}
	one.send(cancelOf(1))
	if f := one.mustNext().failure; f.GetReason() != pb.Reason_REASON_CANCELLED {
		t.Errorf("cancelled: %v", f)
	}
	two.want(2, rangeOf(0, 0, 8))
	if a := two.mustNext(); a.failure != nil {
		t.Errorf("a want after one ended: %v", a.failure)
	}
	b := shown{token: "Bearer " + secretB}
	var err error
	for range 3 {
		err = errors.Join(err, g.tryOpen(b, "photos"))
	}
	if code, reason := reasonOf(errors.Unwrap(firstOf(err))); status.Code(firstOf(err)) != codes.ResourceExhausted {
		t.Errorf("calls beyond the rate: %v %v %v", err, code, reason)
	}
	for id := range uint64(2) {
		one.send(cancelOf(id + 2))
	}
}

// firstOf is one of the errors that were joined.
func firstOf(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range j.Unwrap() {
			return firstOf(e)
		}
	}
	return err
}

// An identity's budget of bytes holds over all its streams, and what the rate lets pass comes in pieces while the node
// says it lives.
func TestBudgetOfBytes(t *testing.T) {
	e := &servertest.Engine{Height: 64, Width: 64, Delay: hang}
	g := guard(t, e, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}, Bytes: 250 << 10},
	}}})
	a := shown{token: "Bearer " + secretA}
	var all []*trainer
	for range 4 {
		s, err := pb.NewFeedClient(g.dial(a)).Fetch(a.context(t))
		if err != nil {
			t.Fatal(err)
		}
		tr := &trainer{t: t, stream: s, cancel: func() {}}
		tr.start(plan)
		all = append(all, tr)
	}
	for i, tr := range all[:3] { // 100 KiB each
		tr.want(1, rangeOf(9, 0, 8))
		until(t, "a want is not taken", func() bool { return e.Making() == i+1 || i == 2 })
	}
	if f := all[2].mustNext().failure; f.GetReason() != pb.Reason_REASON_BUSY {
		t.Errorf("beyond the budget: %v", f)
	}
	all[3].want(1, rangeOf(9, 0, 100)) // 1.2 MB
	if f := all[3].mustNext().failure; f.GetReason() != pb.Reason_REASON_TOO_LARGE {
		t.Errorf("a batch beyond the budget: %v", f)
	}
	for _, tr := range all[:2] {
		tr.send(cancelOf(1))
		tr.mustNext()
	}
	all[2].want(2, rangeOf(0, 0, 8))
	if a := all[2].mustNext(); a.failure != nil {
		t.Errorf("after others were given back: %v", a.failure)
	}
}

// TestAuditOfAJob: of a plan that names its data by its fingerprint alone the line has the root that it was found in.
func TestAuditOfAJob(t *testing.T) {
	t.Run("root", func(t *testing.T) { testAuditOfAJob(t, plan) })
	n := guard(t, &servertest.Engine{}, server.Options{})
	a := shown{token: "Bearer " + secretA}
	opened, err := pb.NewFeedClient(n.dial(a)).Open(a.context(t), &pb.OpenRequest{Protocol: pb.Protocol, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	byFingerprint := fmt.Sprintf(`{"source": {"path": "of/the/trainer", "fingerprint": %q}}`, opened.Fingerprint)
	t.Run("fingerprint", func(t *testing.T) { testAuditOfAJob(t, byFingerprint) })
}

func testAuditOfAJob(t *testing.T, plan string) {
	g := guard(t, &servertest.Engine{}, server.Options{Roots: map[string]string{"photos": t.TempDir()}})
	a := shown{token: "Bearer " + secretA}
	var all []*trainer
	for range 2 {
		s, err := pb.NewFeedClient(g.dial(a)).Fetch(a.context(t))
		if err != nil {
			t.Fatal(err)
		}
		tr := &trainer{t: t, stream: s, cancel: func() {}}
		tr.send(&pb.FetchRequest{Request: &pb.FetchRequest_Start{Start: &pb.Start{Plan: plan, Job: "resnet"}}})
		tr.want(1, rangeOf(0, 0, 8))
		tr.mustNext()
		all = append(all, tr)
	}
	if n := len(g.audited("job")); n != 0 {
		t.Errorf("%d lines while the job runs", n)
	}
	for _, tr := range all {
		if err := tr.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		_, _ = tr.stream.Recv()
	}
	until(t, "no line", func() bool { return len(g.audited("job")) == 1 })
	l := g.audited("job")[0]
	if l.Identity != "team-a" || l.Host != "127.0.0.1" || l.Job != "resnet" || l.Root != "photos" || l.Path != "" || len(l.Plan) != 64 || len(l.Fingerprint) != 64 {
		t.Errorf("%+v", l)
	}
	if l.Streams != 2 || l.Batches != 2 || l.Samples != 16 || l.Bytes != 1024 || l.CoreSeconds <= 0 || l.Seconds <= 0 || l.Failures != 0 {
		t.Errorf("%+v", l)
	}
}

// What Watch tells is of all jobs, so it takes a rule that says so.
func TestWhoMayWatch(t *testing.T) {
	g := guard(t, &servertest.Engine{}, server.Options{Access: admission.Access{Rules: map[string]admission.Rule{
		"team-a": {Roots: []string{"photos"}}, "team-b": {Watch: true},
	}}})
	for token, want := range map[string]codes.Code{secretA: codes.PermissionDenied, secretB: codes.OK, "": codes.Unauthenticated} {
		s := shown{}
		if token != "" {
			s.token = "Bearer " + token
		}
		stream, err := pb.NewFeedClient(g.dial(s)).Watch(s.context(t), &pb.WatchRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != want {
			t.Errorf("with token %.4q: %v, want %v", token, err, want)
		}
	}
}
