package client_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/node"
	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/admission"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// secured starts a node with TLS at a port of this machine.
func secured(t *testing.T, files *admission.TLSFiles, access admission.Access) (addr string) {
	t.Helper()
	o := server.Options{Engine: &servertest.Engine{}, Roots: map[string]string{"photos": t.TempDir()}, Access: access}
	if files != nil {
		var err error
		if o.TLS, err = files.Config(slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	s := server.New(o)
	g := grpc.NewServer(s.GRPCOptions()...)
	s.Register(g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		s.Close()
		<-served
	})
	return l.Addr().String()
}

// opened opens a plan at a node by a fleet, as a trainer does.
func opened(t *testing.T, addr string, d node.DialOptions) error {
	t.Helper()
	f, err := client.New(client.Options{Plan: `{"source": {"root": "photos"}}`, Nodes: []string{addr}, Dialing: d, StartTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Open(t.Context())
	return err
}

// Whatever keeps two sides from trusting each other is told at once, with what to do.
func TestTrust(t *testing.T) {
	ca, foreign := servertest.NewAuthority(t, "ca"), servertest.NewAuthority(t, "foreign")
	good, old, other := ca.Issue("node", time.Hour), ca.Issue("node", -time.Minute), ca.Issue("node", time.Hour, "cpu-1.example")
	mine, expired, alien := ca.Issue("trainer", time.Hour), ca.Issue("trainer", -time.Minute), foreign.Issue("trainer", time.Hour)
	tokens := filepath.Join(t.TempDir(), "tokens")
	const secret = "0123456789abcdef0123"
	if err := os.WriteFile(tokens, []byte("# a comment\nteam-a "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := admission.ReadTokens(tokens, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("nonsense-nonsense-nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := func(p servertest.Pair, ca string) *admission.TLSFiles {
		return &admission.TLSFiles{Cert: p.Cert, Key: p.Key, ClientCA: ca}
	}
	certified := admission.Access{Certificates: true}
	trusting := &node.TLSFiles{CA: ca.File}
	showing := func(p servertest.Pair) *node.TLSFiles {
		return &node.TLSFiles{CA: ca.File, Cert: p.Cert, Key: p.Key}
	}
	for name, c := range map[string]struct {
		node   *admission.TLSFiles
		access admission.Access
		dial   node.DialOptions
		says   string // empty: it works
	}{
		"TLS":                          {files(good, ""), admission.Access{}, node.DialOptions{Files: trusting}, ""},
		"both certificates":            {files(good, ca.File), certified, node.DialOptions{Files: showing(mine)}, ""},
		"token":                        {files(good, ""), admission.Access{Tokens: known}, node.DialOptions{Files: trusting, TokenFile: tokens}, ""},
		"token within the machine":     {nil, admission.Access{Tokens: known}, node.DialOptions{TokenFile: tokens}, ""},
		"name given":                   {files(other, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{CA: ca.File, ServerName: "cpu-1.example"}}, ""},
		"node expired":                 {files(old, ""), admission.Access{}, node.DialOptions{Files: trusting}, "the node's certificate is out of date"},
		"foreign node":                 {files(good, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{CA: foreign.File}}, "by a CA that is not trusted here: pass tls="},
		"unknown to the system":        {files(good, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{}}, "by a CA that is not trusted here"},
		"wrong name":                   {files(other, ""), admission.Access{}, node.DialOptions{Files: trusting}, "dial the node by a name in its certificate"},
		"plaintext to TLS":             {files(good, ""), admission.Access{}, node.DialOptions{}, "if it serves TLS, pass tls="},
		"TLS to plaintext":             {nil, admission.Access{}, node.DialOptions{Files: trusting}, "the node does not speak TLS"},
		"no client certificate":        {files(good, ca.File), certified, node.DialOptions{Files: trusting}, "the node wants a client certificate"},
		"expired client certificate":   {files(good, ca.File), certified, node.DialOptions{Files: showing(expired)}, "this client certificate has expired"},
		"foreign client certificate":   {files(good, ca.File), certified, node.DialOptions{Files: showing(alien)}, "does not know the CA of this client certificate"},
		"no token":                     {files(good, ""), admission.Access{Tokens: known}, node.DialOptions{Files: trusting}, "wants a token, and there is none"},
		"wrong token":                  {files(good, ""), admission.Access{Tokens: known}, node.DialOptions{Files: trusting, TokenFile: wrong}, "does not know that token"},
		"no token file":                {files(good, ""), admission.Access{Tokens: known}, node.DialOptions{Files: trusting, TokenFile: wrong + ".none"}, "no such file"},
		"no CA file":                   {files(good, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{CA: wrong + ".none"}}, "no such file"},
		"CA file without certificates": {files(good, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{CA: wrong}}, "holds no certificate in PEM"},
		"key without certificate":      {files(good, ""), admission.Access{}, node.DialOptions{Files: &node.TLSFiles{CA: ca.File, Key: mine.Key}}, "client certificate"},
	} {
		err := opened(t, secured(t, c.node, c.access), c.dial)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		var denied *node.AccessError
		if c.says != "" && name != "plaintext to TLS" && !errors.As(err, &denied) {
			t.Errorf("%s: %v is no AccessError: the trainer would try again for long", name, err)
		}
	}
	for addr, says := range map[string]string{"cpu-1:7070": "a token goes over TLS only", "10.0.0.1:7070": "a token goes over TLS only"} {
		_, err := node.Dial(addr, node.DialOptions{TokenFile: tokens, Insecure: true})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// A trainer's certificate may be replaced while it runs: the next connection shows the new one.
func TestClientCertificateIsReadAgain(t *testing.T) {
	ca := servertest.NewAuthority(t, "ca")
	theirs, mine := ca.Issue("node", time.Hour), ca.Issue("trainer", -time.Minute)
	addr := secured(t, &admission.TLSFiles{Cert: theirs.Cert, Key: theirs.Key, ClientCA: ca.File}, admission.Access{Certificates: true})
	n, err := node.Dial(addr, node.DialOptions{Files: &node.TLSFiles{CA: ca.File, Cert: mine.Cert, Key: mine.Key}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	request := &pb.OpenRequest{Protocol: pb.Protocol, Plan: `{"source": {"root": "photos"}}`}
	if _, err := n.Open(t.Context(), request); err == nil {
		t.Fatal("an expired certificate is taken")
	}
	ca.Renew(mine, "trainer", time.Hour)
	if _, err := n.Open(t.Context(), request); err != nil {
		t.Error(err)
	}
}
