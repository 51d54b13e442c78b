package server

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// counted is a connection that has a place until it is closed, and that its address pays for. Its methods but net.Conn's may be called without
// one, as by calls from within the process.
type counted struct {
	net.Conn
	host   *host
	frames frames          // of the goroutine that reads
	open   context.Context // until it is closed
	leave  func()
	began  time.Time
	moved  atomic.Int64 // when one of its streams sent something last, nanoseconds since began
	hung   atomic.Bool  // up, by hangUp
}

// Read implements net.Conn.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.host.heed(c.open, c.frames.cost(b[:n]))
	}
	return n, err
}

// pay waits until the connection's address has paid for something that one of its calls made the node do, or ctx ends.
func (c *counted) pay(ctx context.Context, cost time.Duration) {
	if c != nil && cost > 0 {
		c.host.heed(ctx, cost)
	}
}

// Close implements net.Conn.
func (c *counted) Close() error {
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
func (c *counted) gone() bool { return c == nil || c.open.Err() != nil }

// hangUp closes the connection unless one of its streams has sent something within d, and reports whether it did, to one caller only.
func (c *counted) hangUp(d time.Duration) bool {
	if c.gone() || time.Since(c.began)-time.Duration(c.moved.Load()) < d || !c.hung.CompareAndSwap(false, true) {
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
