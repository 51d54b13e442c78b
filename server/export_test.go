package server

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// Memory tells tests the bytes of all slots and of those that are lent.
func (s *Server) Memory() (used, lent int64) { return s.memory.CountBytes() }

// Streams is the number of streams whose handler runs.
func (s *Server) Streams() int { return s.streamCount() }

// Waiting is the number of callers that wait for scans.
func (s *Server) Waiting() int {
	s.library.mu.Lock()
	defer s.library.mu.Unlock()
	n := 0
	for _, f := range s.library.folders {
		if f.scan != nil {
			n += f.scan.waiters
		}
	}
	return n
}

// CheckCertificate is what is done for each call of a connection that began with these certificates.
func CheckCertificate(shown []*x509.Certificate) func(cas *x509.CertPool, now time.Time) error {
	c := &certificate{TLSInfo: credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: shown}}}
	return c.check
}

// SlowCalls lets everybody who called lately make no further call than bursts allow: a machine may be too slow to pass a rate.
func (s *Server) SlowCalls() {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	for _, a := range s.accounts.all {
		a.calls.SetLimit(0)
	}
}

// Affords is how long an identity with this rule waits before each of so many pieces of so many bytes.
func Affords(r Rule, pieces, bytes int) (waits []time.Duration) {
	a := newAccount(r)
	for range pieces {
		waits = append(waits, a.afford(bytes))
	}
	return waits
}

// Reload is a text made of a file by parse, and again when that has changed.
func Reload(log *slog.Logger, parse func() (string, error), file string) (get func() string, err error) {
	r, err := reload(log, parse, file)
	return r.get, err
}

// FailedHandshakes is told of handshakes that failed, as a node's port is.
func FailedHandshakes(log *slog.Logger) func(host string, err error) {
	return newStrangers(counter("failed", ""), counter("refused", ""), log).failed
}

// CostOf is that of what a connection reads, piece by piece.
func CostOf(pieces [][]byte) (cost time.Duration) {
	f := frames{pass: prefaceBytes}
	for _, b := range pieces {
		cost += f.cost(b)
	}
	return cost
}

// Hosts are the addresses that a port knows.
type Hosts struct{ places *places }

// NewHosts knows none.
func NewHosts(o Options) Hosts {
	return Hosts{newPlaces(&o, newStrangers(counter("failed", ""), counter("refused", ""), slog.New(slog.DiscardHandler)))}
}

// Connect is a connection that ends at once; false: it is not taken.
func (h Hosts) Connect(name string) bool {
	place, err := h.places.take(name)
	if err != nil {
		return false
	}
	place.leave()
	return true
}

// Known is how many are remembered.
func (h Hosts) Known() int { return len(h.places.hosts) }

// Listener is that of a port that knows these addresses.
func (h Hosts) Listener(l net.Listener) net.Listener { return newGate(l, h.places) }

// Handshake takes a connection from a gate as gRPC does, and tells what lies below it.
func (s *Server) Handshake(gate net.Listener) (conn, raw net.Conn, err error) {
	c, err := gate.Accept()
	if err != nil {
		return nil, nil, err
	}
	conn, _, err = s.credentials().ServerHandshake(c)
	return conn, c.(*placed).Conn, err
}
