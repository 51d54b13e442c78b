package server

import (
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// counting are a port's credentials, TLS or plaintext, that take so many connections at once, of one machine and together. Those beyond
// are closed at once: whoever was kept waiting for a place would keep others waiting too.
type counting struct {
	credentials.TransportCredentials
	places *places
	failed func(host string, err error) // told of handshakes
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
	return &counting{plain, &places{each: s.options.HostConnections, all: s.options.Connections, hosts: map[string]int{}}, newStrangers(s.metrics.handshakes, s.options.Log).failed}
}

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.places, c.failed}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host := hostOf(raw.RemoteAddr())
	if err := c.places.take(host); err != nil {
		return nil, nil, err
	}
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		c.places.leave(host)
		c.failed(host, err)
		return nil, nil, err
	}
	return &counted{conn, sync.OnceFunc(func() { c.places.leave(host) })}, withCertificate(info), nil
}

func (p *places) take(host string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.hosts[host] >= p.each {
		return fmt.Errorf("%d connections of %s, %d of all: no more are taken", p.hosts[host], host, p.taken)
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

// counted is a connection that has a place until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
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
