package admission

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
)

// CheckCertificate is what is done for each call of a connection that began with these certificates.
func CheckCertificate(shown []*x509.Certificate) func(cas *x509.CertPool, now time.Time) error {
	c := &clientCertificate{TLSInfo: credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: shown}}}
	return c.checkAt
}

// Affords is how long an identity with this rule waits before each of so many pieces of so many bytes.
func Affords(r Rule, pieces, bytes int) (waits []time.Duration) {
	a := newAccount(r)
	for range pieces {
		waits = append(waits, a.ReserveBytes(bytes))
	}
	return waits
}

// Reload is a text made of a file by parse, and again when that has changed.
func Reload(log *slog.Logger, parse func() (string, error), file string) (get func() string, err error) {
	r, err := openReloaded(log, parse, file)
	return r.currentValue, err
}

// FailedHandshakes is told of handshakes that failed, as a node's port is.
func FailedHandshakes(log *slog.Logger) func(host string, err error) {
	return newHandshakeLog(prometheus.NewCounter(prometheus.CounterOpts{Name: "failed"}), prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"}), log).logFailure
}

// CostOf is that of what a connection reads, piece by piece.
func CostOf(pieces [][]byte) (cost time.Duration) {
	f := frameParser{pass: prefaceBytes}
	for _, b := range pieces {
		cost += f.costOf(b)
	}
	return cost
}

// Hosts are the addresses that a port knows.
type Hosts struct{ places *connLimiter }

// NewHosts knows none.
func NewHosts(o Options) Hosts {
	return Hosts{newConnLimiter(o.HostConnections, o.Connections, o.HostShare, newHandshakeLog(prometheus.NewCounter(prometheus.CounterOpts{Name: "failed"}), prometheus.NewCounter(prometheus.CounterOpts{Name: "refused"}), slog.New(slog.DiscardHandler)))}
}

// Connect is a connection that ends at once; false: it is not taken.
func (h Hosts) Connect(name string) bool {
	place, err := h.places.takePlace(name)
	if err != nil {
		return false
	}
	place.release()
	return true
}

// Known is how many are remembered.
func (h Hosts) Known() int { return len(h.places.hosts) }

// Listener is that of a port that knows these addresses.
func (h Hosts) Listener(l net.Listener) net.Listener { return newLimitedListener(l, h.places) }

// Handshake takes a connection from a listener of the guard's as gRPC does, and tells what lies below it.
func (g *Guard) Handshake(l net.Listener) (conn, raw net.Conn, err error) {
	c, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	conn, _, err = g.Credentials().ServerHandshake(c)
	return conn, c.(*admittedConn).Conn, err
}
