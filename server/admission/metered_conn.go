package admission

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// MeteredConn is a connection that has a place until it is closed, and that its address pays for. Its methods but
// net.Conn's may be called without one, as by calls from within the process.
type MeteredConn struct {
	net.Conn
	host    *hostBudget
	frames  frameParser     // of the goroutine that reads
	open    context.Context // until it is closed
	release func()
	sends   atomic.Uint64 // how often one of its streams has sent something
	reads   atomic.Uint64 // how often something came
	hungUp  atomic.Bool   // up, by HangUp
}

// Read implements net.Conn.
func (c *MeteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.reads.Add(1)
		c.host.throttle(c.open, c.frames.costOf(b[:n]))
	}
	return n, err
}

// ChargeFailures waits until the connection's address has paid for so many wants of its calls that came to nothing, or
// ctx ends.
func (c *MeteredConn) ChargeFailures(ctx context.Context, failures int64) {
	if c != nil && failures > 0 {
		c.host.throttle(ctx, time.Duration(failures)*costFailure)
	}
}

// Host is the address at the other end, without its port.
func (c *MeteredConn) Host() string { return hostOf(c.RemoteAddr()) }

// Close implements net.Conn.
func (c *MeteredConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// noteSend notes that one of the connection's streams has sent something.
func (c *MeteredConn) noteSend() {
	if c != nil {
		c.sends.Add(1)
	}
}

// CountSends is how often one of the connection's streams has sent something.
func (c *MeteredConn) CountSends() uint64 {
	if c == nil {
		return 0
	}
	return c.sends.Load()
}

// CountReads is how often something came from the other end, whatever it was.
func (c *MeteredConn) CountReads() uint64 {
	if c == nil {
		return 0
	}
	return c.reads.Load()
}

// IsClosed reports whether the connection is closed.
func (c *MeteredConn) IsClosed() bool { return c == nil || c.open.Err() != nil }

// HangUp closes the connection unless one of its streams has sent something since CountSends was this, and reports
// whether it did, to one caller only.
func (c *MeteredConn) HangUp(sends uint64) bool {
	if c.IsClosed() || c.CountSends() != sends || !c.hungUp.CompareAndSwap(false, true) {
		return false
	}
	_ = c.Close() // nobody reads what it would say
	return true
}

// connAuthInfo leads from a call to its connection, besides what is known of its security.
type connAuthInfo struct {
	credentials.AuthInfo
	conn *MeteredConn
}

// connOf is the connection that a call came over, and what is known of its security; nil within the process.
func connOf(ctx context.Context) (*MeteredConn, credentials.AuthInfo) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, nil
	}
	if c, ok := p.AuthInfo.(connAuthInfo); ok {
		return c.conn, c.AuthInfo
	}
	return nil, p.AuthInfo
}

// ConnOf is the connection that a call came over; nil within the process.
func ConnOf(ctx context.Context) *MeteredConn {
	c, _ := connOf(ctx)
	return c
}
