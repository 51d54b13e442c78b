package server

import (
	"net"
	"time"

	"golang.org/x/time/rate"
)

// gate is a port that hangs up on connections which would be refused, before anything else is done for them. For that alone it takes no more than
// refusalShare of a core: it sleeps where it would, and the kernel turns away those for whom its queue has no room.
type gate struct {
	net.Listener
	places *places
	purse  *rate.Limiter // of nanoseconds of a core
}

const (
	refusalShare = 0.03
	costRefusal  = 35 * time.Microsecond
)

// Listener is l for a gRPC server of nodes: a flood of connections to it costs less than one to l itself.
func (s *Server) Listener(l net.Listener) net.Listener {
	return newGate(l, s.places)
}

func newGate(l net.Listener, p *places) *gate {
	return &gate{l, p, rate.NewLimiter(rate.Limit(refusalShare*float64(time.Second)), int(10*time.Millisecond))}
}

// placed is a connection that has its place from when it was accepted. Who shakes hands on it takes the place over.
type placed struct {
	net.Conn
	place *place
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.place.leave()
	return p.Conn.Close()
}

// Accept implements net.Listener. Places are taken and paid for here: handshakes may begin much later on a busy node, and none of a flood would
// have been refused by then.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		name := hostOf(c.RemoteAddr())
		place, err := g.places.take(name)
		if err == nil {
			return &placed{c, place}, nil
		}
		g.places.book.refused(name, err)
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // nothing is left of it
		}
		_ = c.Close()
		time.Sleep(g.purse.ReserveN(time.Now(), int(costRefusal)).Delay())
	}
}
