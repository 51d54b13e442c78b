package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// counting are a port's credentials, TLS or plaintext, that take so many connections at once, of one machine and together. Those beyond
// are closed at once: whoever was kept waiting for a place would keep others waiting too.
type counting struct {
	credentials.TransportCredentials
	places    *places
	strangers *strangers
}

// places are those that connections take, from the begin of their handshake to their end.
type places struct {
	each, all int

	mu    sync.Mutex
	taken int
	hosts map[string]int
}

// credentials of the node's port.
func (s *Server) credentials() credentials.TransportCredentials {
	plain := insecure.NewCredentials()
	if s.options.TLS != nil {
		plain = credentials.NewTLS(s.options.TLS)
	}
	return &counting{plain, &places{each: s.options.HostConnections, all: s.options.Connections, hosts: map[string]int{}}, newStrangers(s.metrics.handshakes, s.metrics.unplaced, s.options.Log)}
}

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.places, c.strangers}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host := hostOf(raw.RemoteAddr())
	if err := c.places.take(host); err != nil {
		c.strangers.refused(host, err)
		return nil, nil, err
	}
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		c.places.leave(host)
		c.strangers.failed(host, err)
		return nil, nil, err
	}
	held := &counted{Conn: conn, leave: sync.OnceFunc(func() { c.places.leave(host) }), began: time.Now()}
	return held, carried{withCertificate(info), held}, nil
}

func (p *places) take(host string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[host] >= p.each {
		return fmt.Errorf("%d connections of one address are open, as many as --max-connections allows", p.each)
	}
	if p.taken >= p.all {
		return fmt.Errorf("%d connections are open, as many as a node takes", p.all)
	}
	p.taken++
	p.hosts[host]++
	return nil
}

func (p *places) leave(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.hosts[host]--; p.hosts[host] == 0 {
		delete(p.hosts, host)
	}
}

// counted is a connection that has a place until it is closed. Its methods but net.Conn's may be called without one, as by calls from
// within the process.
type counted struct {
	net.Conn
	leave  func()
	began  time.Time
	moved  atomic.Int64 // when one of its streams sent something last, nanoseconds since began
	closed atomic.Bool
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.closed.Store(true)
	defer c.leave()
	return c.Conn.Close()
}

// move notes that one of the connection's streams has sent something.
func (c *counted) move() {
	if c != nil {
		c.moved.Store(int64(time.Since(c.began)))
	}
}

// gone reports whether the connection is closed.
func (c *counted) gone() bool { return c == nil || c.closed.Load() }

// hangUp closes the connection unless one of its streams has sent something within d, and reports whether it did.
func (c *counted) hangUp(d time.Duration) bool {
	if c.gone() || time.Since(c.began)-time.Duration(c.moved.Load()) < d {
		return false
	}
	_ = c.Close() // nobody reads what it would say
	return true
}

// carried leads from a call to its connection, besides what is known of its security.
type carried struct {
	credentials.AuthInfo
	conn *counted
}

// carrier is the connection that a call came over, and what is known of its security; nil within the process.
func carrier(ctx context.Context) (*counted, credentials.AuthInfo) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, nil
	}
	if c, ok := p.AuthInfo.(carried); ok {
		return c.conn, c.AuthInfo
	}
	return nil, p.AuthInfo
}

// hostOf is an address without its port; of what has none, the kind of network.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.Network()
}
