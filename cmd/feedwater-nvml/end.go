package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takeStdout moves standard output to a handle of its own, and lets what the driver's library prints go to standard error: some
// versions print warnings, which must not come between the lines.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, unix.Stderr+1)
	if err != nil {
		return nil, fmt.Errorf("standard output: %w", err)
	}
	if err := unix.Dup3(unix.Stderr, unix.Stdout, 0); err != nil {
		return nil, fmt.Errorf("standard error: %w", err)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}

// parentPoll is how often the parent is looked for where it cannot be waited for.
const parentPoll = time.Second

// awaitEnd returns when the parent has ended or nobody can read out any more.
func awaitEnd(out *os.File) {
	parent := os.Getppid()
	fds := []unix.PollFd{{Fd: int32(out.Fd())}} // errors and hang-ups are always told
	wait := -1
	switch pidfd, err := unix.PidfdOpen(parent, 0); {
	case parent == 0: // outside this container, and then this program is its first and ends with it
	case err != nil:
		wait = int(parentPoll.Milliseconds())
	default:
		fds = append(fds, unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN})
	}
	// A parent that ended before it could be waited for has been replaced by another by now.
	for os.Getppid() == parent {
		n, err := unix.Poll(fds, wait)
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}
