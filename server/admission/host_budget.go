package admission

import (
	"context"
	"net"
	"time"

	"golang.org/x/time/rate"
)

// hostBudget is one address, as a port knows it. A node works for whoever connects, shakes hands or sends frames before
// it can know whether that is meant well, so each address has so much of a core for all of this together, whether its
// calls are let in or not. Making batches is not part of it.
type hostBudget struct {
	open   int           // connections; guarded by places.mu
	budget *rate.Limiter // of nanoseconds of a core
}

// What it costs a node, of a core. `make attacks` tells for each kind of attack what its unit costs.
const (
	costConnection = 2 * time.Millisecond // with its handshake and its end
	costCall       = 80 * time.Microsecond
	costRead       = 5 * time.Microsecond // of whatever comes at once: a record of TLS may hold one byte
	costFrame      = time.Microsecond
	costByte       = 20 * time.Nanosecond  // of a request: what the dearest costs, which is a long plan
	costFailure    = 35 * time.Microsecond // a want that comes to nothing, with its answer; those that are made are paid for by shares of the cores
)

const standardHostConnections = 256

// newHostBudget lets an address begin as many connections at once as it may have, and calls on all of them.
func newHostBudget(share float64, connections int) *hostBudget {
	burst := max(connections, standardHostConnections) * int(costConnection) * 5 / 4
	return &hostBudget{budget: rate.NewLimiter(rate.Limit(share*float64(time.Second)), burst)}
}

// isIdle reports whether an address has no connection, and might as well be a new one.
func (h *hostBudget) isIdle() bool {
	return h.open == 0 && h.budget.Tokens() >= float64(h.budget.Burst())
}

// canConnect reports whether the address can pay for a connection now; pays has it pay.
func (h *hostBudget) canConnect() bool { return h.budget.Tokens() >= float64(costConnection) }
func (h *hostBudget) payConnection()   { h.budget.AllowN(time.Now(), int(costConnection)) }

// throttle waits until the address has paid for what a connection of its has said, or ctx ends. It pays little by
// little, so that its other connections have their turn.
func (h *hostBudget) throttle(ctx context.Context, cost time.Duration) {
	for most := time.Millisecond; cost > 0; cost -= most {
		if h.budget.WaitN(ctx, int(min(cost, most))) != nil {
			return
		}
	}
}

// frameParser is where a connection is in the HTTP/2 that it reads.
type frameParser struct {
	pass int     // bytes until the next frame's head
	head [9]byte // of a frame
	have int     // bytes of it
}

const prefaceBytes = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") // with which a client begins

// costOf is what the next bytes cost: each frame that begins in them, most of all those of headers, and each byte.
func (f *frameParser) costOf(b []byte) time.Duration {
	cost := costRead + time.Duration(len(b))*costByte
	for len(b) > 0 {
		if f.pass > 0 {
			n := min(f.pass, len(b))
			f.pass, b = f.pass-n, b[n:]
			continue
		}
		n := copy(f.head[f.have:], b)
		f.have, b = f.have+n, b[n:]
		if f.have == len(f.head) {
			f.have, f.pass = 0, int(f.head[0])<<16|int(f.head[1])<<8|int(f.head[2])
			cost += costOfFrame(f.head[3])
		}
	}
	return cost
}

// costOfFrame is that of a frame of this kind, RFC 9113 section 6.
func costOfFrame(kind byte) time.Duration {
	const headers, continuation = 0x1, 0x9
	if kind == headers || kind == continuation {
		return costCall
	}
	return costFrame
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
