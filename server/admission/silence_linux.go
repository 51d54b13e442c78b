package admission

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endWhenSilent has the kernel end a connection whose peer acknowledges nothing for so long. gRPC would, but not for
// those that a gate has wrapped.
func endWhenSilent(c net.Conn, after time.Duration) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
}
