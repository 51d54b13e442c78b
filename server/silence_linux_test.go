package server_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

// The kernel ends a connection that came through the node's gate when its peer acknowledges nothing for a minute.
func TestKernelEndsSilentConnections(t *testing.T) {
	s := server.New(server.Options{Engine: &servertest.Engine{}})
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, raw, err := s.Handshake(s.Listener(l))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn, err := raw.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Control(func(fd uintptr) {
		if ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms != 60_000 {
			t.Errorf("after %d ms, %v", ms, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
