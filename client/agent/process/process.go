// Package process finds out when another process ends: one that may be stopped, or a zombie, or holds its sockets in
// forked children.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// NewWaker makes a pipe whose writing end, closed by done, ends AwaitExit.
func NewWaker() (wake *os.File, done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("wake pipe: %w", err)
	}
	return r, func() { _ = w.Close() }, nil
}

// AwaitExit waits until the process behind the pidfd has ended, and returns true; or until wake does, and returns
// false. It takes wake over. Where pidfds cannot be polled it returns false at once: then the control socket alone
// tells.
func AwaitExit(pidfd, wake *os.File) bool {
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

// IsExiting reports whether a process has ended or begun to end: it will not run a line of its program again. False for
// process 0, and where /proc does not tell.
func IsExiting(pid int) bool {
	if pid <= 0 {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	// proc_pid_stat(5): field 9 has the kernel's flags, among them PF_EXITING. Field 2, the name, may hold spaces;
	// field 3 follows it.
	const flagsField, flagExiting = 9 - 3, 0x4
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= flagsField {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[flagsField]), 10, 64)
	return err == nil && flags&flagExiting != 0
}
