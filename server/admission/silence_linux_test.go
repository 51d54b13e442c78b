package admission_test

import (
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/server/admission"
)

// The kernel ends a connection that came through the node's gate when its peer acknowledges nothing for a minute.
func TestKernelEndsSilentConnections(t *testing.T) {
	count := prometheus.NewCounter(prometheus.CounterOpts{Name: "ended"})
	g := admission.New(admission.Options{FailedHandshakes: count, RefusedConnections: count})
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
	c, raw, err := g.Handshake(g.LimitListener(l))
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
