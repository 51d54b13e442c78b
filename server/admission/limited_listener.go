package admission

import (
	"net"
	"time"

	"golang.org/x/time/rate"
)

// limitedListener is a port that hangs up on connections which would be refused, before anything else is done for them.
// For that alone it takes no more than refusalShare of a core: it sleeps where it would, and the kernel turns away
// those for whom its queue has no room.
type limitedListener struct {
	net.Listener
	limiter *connLimiter
	budget  *rate.Limiter // of nanoseconds of a core
}

const (
	refusalShare = 0.03
	costRefusal  = 35 * time.Microsecond
)

func newLimitedListener(l net.Listener, p *connLimiter) *limitedListener {
	return &limitedListener{l, p, rate.NewLimiter(rate.Limit(refusalShare*float64(time.Second)), int(10*time.Millisecond))}
}

// Accept implements net.Listener. Places are taken and paid for here: handshakes may begin much later on a busy node,
// and none of a flood would have been refused by then.
func (g *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		name := hostOf(c.RemoteAddr())
		place, err := g.limiter.takePlace(name)
		if err == nil {
			return &admittedConn{c, place}, nil
		}
		g.limiter.log.logRefusal(name, err)
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // nothing is left of it
		}
		_ = c.Close()
		time.Sleep(g.budget.ReserveN(time.Now(), int(costRefusal)).Delay())
	}
}
