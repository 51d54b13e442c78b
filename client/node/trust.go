package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// TLSFiles are what a trainer shows to nodes, and by what it knows them. All are PEM, and read again for each
// connection, so that certificates can be replaced while a job runs. The zero value trusts the CAs of the system and
// shows nothing.
type TLSFiles struct {
	// CA holds the CAs that sign nodes' certificates. Empty: those of the system.
	CA string
	// Cert and Key are shown to nodes that ask for a client certificate. Both or neither.
	Cert, Key string
	// ServerName is what nodes' certificates are made out to. Empty: the host of each node's address.
	ServerName string
}

// newConfig reads the files, until ctx ends.
func (f *TLSFiles) newConfig(ctx context.Context) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: f.ServerName}
	if f.CA != "" {
		text, err := secrets.readFile(ctx, f.CA)
		if err != nil {
			return nil, fmt.Errorf("the CA's certificate: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM", f.CA)
		}
	}
	if f.Cert == "" && f.Key == "" {
		return c, nil
	}
	pair, err := f.readPair(ctx)
	if err != nil {
		return nil, fmt.Errorf("client certificate %q and key %q: %w", f.Cert, f.Key, err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return c, nil
}

// readPair reads the client certificate and its key.
func (f *TLSFiles) readPair(ctx context.Context) (tls.Certificate, error) {
	cert, err := secrets.readFile(ctx, f.Cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := secrets.readFile(ctx, f.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// fileCredentials are TLS credentials made of files anew for each connection. What a handshake failed of is kept, for
// gRPC hands on its text alone.
type fileCredentials struct {
	credentials.TransportCredentials // of the zero configuration, for all but handshakes
	config                           func(context.Context) (*tls.Config, error)
	failed                           *atomic.Pointer[AccessError]
}

func newFileCredentials(config func(context.Context) (*tls.Config, error), failed *atomic.Pointer[AccessError]) *fileCredentials {
	return &fileCredentials{credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}), config, failed}
}

// Clone implements credentials.TransportCredentials.
func (t *fileCredentials) Clone() credentials.TransportCredentials { c := *t; return &c }

// ClientHandshake implements credentials.TransportCredentials.
func (t *fileCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, err := t.config(ctx)
	if errors.Is(err, errNoAnswer) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, t.keepError(err.Error())
	}
	if c.ServerName != "" {
		authority = c.ServerName
	}
	conn, info, err := credentials.NewTLS(c).ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, t.keepRefusal(err)
	}
	return &verifiedConn{conn, t}, info, nil
}

// keepRefusal keeps an error that trying again would not mend.
func (t *fileCredentials) keepRefusal(err error) error {
	if advice := adviceOn(err); advice != "" {
		return t.keepError(err.Error() + ": " + advice)
	}
	return err
}

func (t *fileCredentials) keepError(message string) error {
	e := &AccessError{Message: message}
	t.failed.Store(e)
	return e
}

// verifiedConn is a connection after its handshake. What a node says to a client certificate comes later, to the first
// reader.
type verifiedConn struct {
	net.Conn
	credentials *fileCredentials
}

// Read implements net.Conn.
func (c *verifiedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && isAlert(err) {
		err = c.credentials.keepRefusal(err)
	}
	return n, err
}

// Alerts of TLS, RFC 8446 section 6.
const (
	alertBadCertificate      tls.AlertError = 42
	alertExpired             tls.AlertError = 45
	alertUnknownCertificate  tls.AlertError = 46
	alertUnknownAuthority    tls.AlertError = 48
	alertProtocolVersion     tls.AlertError = 70
	alertCertificateRequired tls.AlertError = 116
)

// alerts are what to do about what a node said.
var alerts = map[tls.AlertError]string{
	alertBadCertificate:      "the node does not take this client certificate: is it signed by the CA of the node's --client-ca, and made for client authentication?",
	alertExpired:             "the node says that this client certificate has expired: renew it",
	alertUnknownCertificate:  "the node does not take this client certificate: is it signed by the CA of the node's --client-ca?",
	alertUnknownAuthority:    "the node does not know the CA of this client certificate: use one that is signed by the CA of the node's --client-ca",
	alertProtocolVersion:     "the node does not speak TLS 1.3",
	alertCertificateRequired: `the node wants a client certificate: pass tls={"ca": ..., "cert": ..., "key": ...}`,
}

// alertOf finds what the other end said in an error. crypto/tls keeps its own type to itself, but not its text.
func alertOf(err error) (advice string, ok bool) {
	var operation *net.OpError
	if !errors.As(err, &operation) || operation.Op != "remote error" {
		return "", false
	}
	for alert, advice := range alerts {
		if operation.Err.Error() == alert.Error() {
			return advice, true
		}
	}
	return "", false
}

func isAlert(err error) bool {
	_, ok := alertOf(err)
	return ok
}

// adviceOn is what to do about a failed handshake; "" where trying again may be it.
func adviceOn(err error) string {
	var (
		header    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	advice, _ := alertOf(err)
	switch {
	case advice != "":
	case errors.As(err, &header):
		advice = "the node does not speak TLS: start it with --tls-cert and --tls-key, or leave out tls= (to another machine that needs insecure=True)"
	case errors.As(err, &authority):
		advice = `the node's certificate is signed by a CA that is not trusted here: pass tls={"ca": FILE} with the CA that signed it`
	case errors.As(err, &name):
		advice = `dial the node by a name in its certificate, or pass tls={"ca": ..., "server_name": NAME} with one`
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		advice = "the node's certificate is out of date, or this machine's clock is wrong: replace the files of --tls-cert and --tls-key, the node reads them again by itself"
	case errors.As(err, &invalid):
		advice = "the node's certificate is not good for a server"
	}
	return advice
}

// bearerToken shows a token at each call. Its file is read again each time.
type bearerToken struct{ path string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearerToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	text, err := secrets.readFile(ctx, b.path)
	if errors.Is(err, errNoAnswer) {
		return nil, status.Errorf(codes.Unavailable, "the token: %v", err)
	}
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "the token: %v", err)
	}
	secret := tokenIn(string(text))
	if secret == "" {
		return nil, status.Errorf(codes.Unauthenticated, "the token: %s holds none; write one line, TOKEN or IDENTITY TOKEN", b.path)
	}
	return map[string]string{"authorization": "Bearer " + secret}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. Dial has seen to it: on this machine plaintext is
// fine.
func (bearerToken) RequireTransportSecurity() bool { return false }

// tokenIn is the token of a file: the last word of its first line that says anything, so that a node's file of one
// identity is good too.
func tokenIn(text string) string {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words[len(words)-1]
		}
	}
	return ""
}
