package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// waker makes a pipe whose writing end, closed by done, ends awaitExit.
func waker() (wake *os.File, done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("wake pipe: %w", err)
	}
	return r, func() { _ = w.Close() }, nil
}

// awaitExit waits until the process behind the pidfd has ended, and returns true; or until wake does, and returns false. It takes
// wake over. Where pidfds cannot be polled it returns false at once: then the control socket alone tells.
func awaitExit(pidfd, wake *os.File) bool {
	defer wake.Close()
	fds := []unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || fds[1].Revents != 0:
			return false
		case fds[0].Revents&unix.POLLIN != 0:
			return true
		case fds[0].Revents != 0:
			return false
		}
	}
}
