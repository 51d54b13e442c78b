package main

import (
	"container/list"
	"net"
	"sync"
)

// maxWebConnections is how many connections a port for probes or scrapes has at once: each takes a handle, of which the whole process has as many as
// its limit of open files.
const maxWebConnections = 64

// boundedListener is a port that has so many connections at once. Of one more the oldest makes room: whoever holds connections keeps no probe out.
type boundedListener struct {
	net.Listener
	most int

	mu   sync.Mutex
	open *list.List // of *boundedConn, the oldest first
}

func newBoundedListener(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, most: most, open: list.New()}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: raw, port: l}
	if oldest := l.add(c); oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// add counts a connection, and returns the one that is to make room for it.
func (l *boundedListener) add(c *boundedConn) (oldest *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.place = l.open.PushBack(c)
	if l.open.Len() <= l.most {
		return nil
	}
	oldest, _ = l.open.Front().Value.(*boundedConn)
	return oldest
}

// boundedConn is a connection of a boundedListener.
type boundedConn struct {
	net.Conn
	port  *boundedListener
	place *list.Element
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.port.mu.Lock()
	c.port.open.Remove(c.place) // does nothing the second time
	c.port.mu.Unlock()
	return c.Conn.Close()
}
