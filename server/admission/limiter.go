package admission

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/feedwater-io/feedwater/server/batchmem"
)

// PingTimeout is until a peer that answers no ping, or acknowledges nothing, is gone.
const PingTimeout = time.Minute

// meteredCredentials are a port's credentials, TLS or plaintext, that take so many connections at once, of one machine
// and together, and of one machine no more in a while than it pays for. Those beyond are closed at once: whoever was
// kept waiting for a place would keep others waiting too.
type meteredCredentials struct {
	credentials.TransportCredentials
	places *connLimiter
	memory *batchmem.Memory // that connections refer to as they write; nil: gRPC gathers what they write
}

// connLimiter are those that connections take, from the begin of their handshake to their end.
type connLimiter struct {
	perHost, limit int
	share          float64       // of a core, that each machine may cost
	log            *handshakeLog // told of connections that come to nothing

	mu      sync.Mutex
	taken   int
	hosts   map[string]*hostBudget
	sweepAt int // of hosts, from which on those that are idle are forgotten
}

func newConnLimiter(perHost, limit int, share float64, log *handshakeLog) *connLimiter {
	return &connLimiter{perHost: perHost, limit: limit, share: share, log: log, hosts: map[string]*hostBudget{}, sweepAt: manyHosts}
}

// manyHosts is how many are remembered whether they are idle or not.
const manyHosts = 4096

// Clone implements credentials.TransportCredentials.
func (c *meteredCredentials) Clone() credentials.TransportCredentials {
	return &meteredCredentials{c.TransportCredentials.Clone(), c.places, c.memory}
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *meteredCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	name := hostOf(raw.RemoteAddr())
	raw, place, err := c.places.placeOf(raw, name)
	if err != nil {
		c.places.log.logRefusal(name, err)
		return nil, nil, err
	}
	endWhenSilent(raw, PingTimeout)
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		place.release()
		c.places.log.logFailure(name, err)
		return nil, nil, err
	}
	if c.memory != nil {
		conn = batchmem.GatherWrites(conn, c.memory)
	}
	open, end := context.WithCancel(context.Background())
	held := &MeteredConn{
		Conn: conn, host: place.host, frames: frameParser{pass: prefaceBytes}, open: open,
		release: func() { end(); place.release() },
	}
	return held, connAuthInfo{attachCertificate(info), held}, nil
}

// connPlace is a connection's.
type connPlace struct {
	host    *hostBudget
	release func() // at its end; may be called again
}

// admittedConn is a connection that has its place from when it was accepted. Who shakes hands on it takes the place
// over.
type admittedConn struct {
	net.Conn
	place *connPlace
}

// Close implements net.Conn.
func (p *admittedConn) Close() error {
	p.place.release()
	return p.Conn.Close()
}

// placeOf is the place of a connection from a host, which it has if it came through a gate, and the connection itself.
func (p *connLimiter) placeOf(c net.Conn, name string) (net.Conn, *connPlace, error) {
	if has, ok := c.(*admittedConn); ok {
		return has.Conn, has.place, nil
	}
	taken, err := p.takePlace(name)
	return c, taken, err
}

func (p *connLimiter) takePlace(name string) (*connPlace, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hostOf(name)
	if err := p.checkRoom(name, h); err != nil {
		return nil, err
	}
	h.payConnection()
	p.taken++
	h.open++
	return &connPlace{h, sync.OnceFunc(func() { p.releasePlace(h) })}, nil
}

// checkRoom is why a host may not connect, if it may not. mu is held.
func (p *connLimiter) checkRoom(name string, h *hostBudget) error {
	switch {
	case h.open >= p.perHost:
		return fmt.Errorf("%d connections of one address are open, as many as --max-connections allows", p.perHost)
	case p.taken >= p.limit:
		return fmt.Errorf("%d connections are open, as many as a node takes", p.limit)
	case !h.canConnect():
		return fmt.Errorf("%s costs more than %g of a core by its connections and requests: it has to wait", name, p.share)
	}
	return nil
}

// hostOf is that of a name. mu is held.
func (p *connLimiter) hostOf(name string) *hostBudget {
	h := p.hosts[name]
	if h == nil {
		p.forgetIdle()
		h = newHostBudget(p.share, p.perHost)
		p.hosts[name] = h
	}
	return h
}

// forgetIdle forgets hosts that are idle, if there are many. mu is held.
func (p *connLimiter) forgetIdle() {
	if len(p.hosts) < p.sweepAt {
		return
	}
	maps.DeleteFunc(p.hosts, func(_ string, h *hostBudget) bool { return h.isIdle() })
	p.sweepAt = max(manyHosts, 2*len(p.hosts))
}

func (p *connLimiter) releasePlace(h *hostBudget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	h.open--
}
