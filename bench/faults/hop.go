//go:build linux

package main

import (
	"errors"
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// segmentBytes is what a segment carries at most: 1460 less the time stamps.
const segmentBytes = 1448

// hop is a TCP connection of this program with itself, both of whose ends lose segments that arrive: a filter on the socket drops them
// before TCP sees them, and TCP has to do the rest. It takes no privileges, and no queueing discipline that a kernel may lack.
type hop struct{ near, far end }

// end of a hop. What is written goes in segments, not in the larger pieces that a machine hands itself.
type end struct{ *net.TCPConn }

// Write implements net.Conn.
func (e end) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = e.TCPConn.Write(b[n:min(n+segmentBytes, len(b))])
		n += k
	}
	return n, err
}

// newHop makes a hop that loses what the link loses.
func (l *link) newHop() (*hop, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer shutListener(listener)
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return onSocket(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, segmentBytes+12) })
	}}
	near, err := dialer.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	far, err := listener.AcceptTCP()
	if err != nil {
		shut(near)
		return nil, err
	}
	h := &hop{far: end{far}}
	h.near.TCPConn, _ = near.(*net.TCPConn)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hops[h] = struct{}{}
	return h, h.lose(l.now.Loss)
}

func shutListener(l net.Listener) { _ = l.Close() }

// leave closes a hop.
func (l *link) leave(h *hop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.hops, h)
	for _, e := range []end{h.near, h.far} {
		shut(e)
	}
}

// on does something with the socket.
func (e end) on(do func(fd int) error) error {
	c, err := e.SyscallConn()
	if err != nil {
		return err
	}
	return onSocket(c, do)
}

func onSocket(c syscall.RawConn, do func(fd int) error) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = do(int(fd)) }), err)
}

// lose has both ends lose that share of the segments from now on.
func (h *hop) lose(share float64) error {
	// A = random; below the share: drop it, else keep all of it. Ancillary data is told from bytes of a segment by its offset.
	const ancillary, random = 1<<32 - 0x1000, 56
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: ancillary + random},
		{Code: unix.BPF_JMP | unix.BPF_JGE, K: uint32(share * math.MaxUint32), Jf: 1},
		{Code: unix.BPF_RET, K: math.MaxUint32},
		{Code: unix.BPF_RET, K: 0},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	var errs []error
	for _, e := range []end{h.near, h.far} {
		errs = append(errs, e.on(func(fd int) error {
			return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
		}))
	}
	return errors.Join(errs...)
}
