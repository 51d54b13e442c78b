package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/feedwater-io/feedwater/server/batchmem"
)

// counting are a port's credentials, TLS or plaintext, that take so many connections at once, of one machine and together, and of one machine no
// more in a while than it pays for. Those beyond are closed at once: whoever was kept waiting for a place would keep others waiting too.
type counting struct {
	credentials.TransportCredentials
	places *places
	memory *batchmem.Memory // that connections refer to as they write; nil: gRPC gathers what they write
}

// places are those that connections take, from the begin of their handshake to their end.
type places struct {
	each, all int
	share     float64    // of a core, that each machine may cost
	book      *strangers // told of connections that come to nothing

	mu    sync.Mutex
	taken int
	hosts map[string]*host
	many  int // of hosts, from which on those that are idle are forgotten
}

// credentials of the node's port.
func (s *Server) credentials() credentials.TransportCredentials {
	if s.options.TLS != nil {
		return &counting{credentials.NewTLS(s.options.TLS), s.places, nil}
	}
	return &counting{insecure.NewCredentials(), s.places, s.memory}
}

func newPlaces(o *Options, book *strangers) *places {
	return &places{each: o.HostConnections, all: o.Connections, share: o.HostShare, book: book, hosts: map[string]*host{}, many: manyHosts}
}

// manyHosts is how many are remembered whether they are idle or not.
const manyHosts = 4096

// Clone implements credentials.TransportCredentials.
func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.places, c.memory}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	name := hostOf(raw.RemoteAddr())
	raw, place, err := c.places.of(raw, name)
	if err != nil {
		c.places.book.refused(name, err)
		return nil, nil, err
	}
	endWhenSilent(raw, pingTimeout)
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		place.leave()
		c.places.book.failed(name, err)
		return nil, nil, err
	}
	if c.memory != nil {
		conn = batchmem.GatherWrites(conn, c.memory)
	}
	open, end := context.WithCancel(context.Background())
	held := &counted{
		Conn: conn, host: place.host, frames: frames{pass: prefaceBytes}, open: open, began: time.Now(),
		leave: func() { end(); place.leave() },
	}
	return held, carried{withCertificate(info), held}, nil
}

// place is a connection's.
type place struct {
	host  *host
	leave func() // at its end; may be called again
}

// of is the place of a connection from a host, which it has if it came through a gate, and the connection itself.
func (p *places) of(c net.Conn, name string) (net.Conn, *place, error) {
	if has, ok := c.(*placed); ok {
		return has.Conn, has.place, nil
	}
	taken, err := p.take(name)
	return c, taken, err
}

func (p *places) take(name string) (*place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.host(name)
	if err := p.refusal(name, h); err != nil {
		return nil, err
	}
	h.pays()
	p.taken++
	h.open++
	return &place{h, sync.OnceFunc(func() { p.leave(h) })}, nil
}

// refusal is why a host may not connect, if it may not. mu is held.
func (p *places) refusal(name string, h *host) error {
	switch {
	case h.open >= p.each:
		return fmt.Errorf("%d connections of one address are open, as many as --max-connections allows", p.each)
	case p.taken >= p.all:
		return fmt.Errorf("%d connections are open, as many as a node takes", p.all)
	case !h.affords():
		return fmt.Errorf("%s costs more than %g of a core by its connections and requests: it has to wait", name, p.share)
	}
	return nil
}

// host is that of a name. mu is held.
func (p *places) host(name string) *host {
	h := p.hosts[name]
	if h == nil {
		p.sweep()
		h = newHost(p.share, p.each)
		p.hosts[name] = h
	}
	return h
}

// sweep forgets hosts that are idle, if there are many. mu is held.
func (p *places) sweep() {
	if len(p.hosts) < p.many {
		return
	}
	maps.DeleteFunc(p.hosts, func(_ string, h *host) bool { return h.idle() })
	p.many = max(manyHosts, 2*len(p.hosts))
}

func (p *places) leave(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	h.open--
}

// hostOf is an address without its port; of what has none, the kind of network.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	if host := hostOfPort(a.String()); host != "" {
		return host
	}
	return a.Network()
}

// hostOfPort is the host of HOST:PORT; empty where there is none.
func hostOfPort(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	return host
}
