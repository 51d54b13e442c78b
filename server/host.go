package server

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// host is one address, as a port knows it. A node works for whoever connects, shakes hands or sends frames before it can know whether that is
// meant well, so each address has so much of a core for all of this together, whether its calls are let in or not. Making batches is not part of it.
type host struct {
	open  int           // connections; guarded by places.mu
	purse *rate.Limiter // of nanoseconds of a core
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

// newHost lets an address begin as many connections at once as it may have, and calls on all of them.
func newHost(share float64, connections int) *host {
	burst := max(connections, standardHostConnections) * int(costConnection) * 5 / 4
	return &host{purse: rate.NewLimiter(rate.Limit(share*float64(time.Second)), burst)}
}

// idle reports whether an address has no connection, and might as well be a new one.
func (h *host) idle() bool { return h.open == 0 && h.purse.Tokens() >= float64(h.purse.Burst()) }

// affords reports whether the address can pay for a connection now; pays has it pay.
func (h *host) affords() bool { return h.purse.Tokens() >= float64(costConnection) }
func (h *host) pays()         { h.purse.AllowN(time.Now(), int(costConnection)) }

// heed waits until the address has paid for what a connection of its has said, or ctx ends. It pays little by little, so that its other connections have
// their turn.
func (h *host) heed(ctx context.Context, cost time.Duration) {
	for most := time.Millisecond; cost > 0; cost -= most {
		if h.purse.WaitN(ctx, int(min(cost, most))) != nil {
			return
		}
	}
}

// frames is where a connection is in the HTTP/2 that it reads.
type frames struct {
	pass int     // bytes until the next frame's head
	head [9]byte // of a frame
	have int     // bytes of it
}

const prefaceBytes = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") // with which a client begins

// cost is what the next bytes cost: each frame that begins in them, most of all those of headers, and each byte.
func (f *frames) cost(b []byte) time.Duration {
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
			cost += costOf(f.head[3])
		}
	}
	return cost
}

// costOf is that of a frame of this kind, RFC 9113 section 6.
func costOf(kind byte) time.Duration {
	const headers, continuation = 0x1, 0x9
	if kind == headers || kind == continuation {
		return costCall
	}
	return costFrame
}
