//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched is the first argument by which this program is asked to be the go-between of disk.watch.
const watched = "watched"

// largeRead is how many bytes a read(2) asks for that is looked at: photographs are read whole, and nothing else of a node reads so much.
const largeRead = 40_000

// disk is what a node's photographs are read from. When it is broken, read(2) fails with EIO: the kernel asks this program about each
// large read, by a seccomp filter, which needs no privileges.
type disk struct {
	broken atomic.Bool
	failed atomic.Int64 // reads
}

// watch has the disk asked about a command's reads. The caller starts the command, then calls serve with what watch returned.
func (d *disk) watch(c *exec.Cmd) (*net.UnixConn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "watcher"), os.NewFile(uintptr(pair[1]), "watched")
	defer mine.Close()
	c.Args = append([]string{os.Args[0], watched}, c.Args...)
	c.Path = "/proc/self/exe"
	c.ExtraFiles = []*os.File{theirs}
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, err
	}
	socket, _ := conn.(*net.UnixConn)
	return socket, nil
}

// runWatched is the go-between: it installs the filter, sends its descriptor and becomes the command.
func runWatched(command []string) error {
	runtime.LockOSThread() // which the filter is of
	listener, err := filter()
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	const socket = 3
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("the filter's descriptor: %w", err)
	}
	unix.CloseOnExec(socket)
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, command, os.Environ())
}

// filter has the kernel ask about large reads of this thread and what it becomes. Offsets are those of struct seccomp_data.
func filter() (listener int, err error) {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	const load, equal, greater, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JGT, unix.BPF_RET
	program := []unix.SockFilter{
		{Code: load, K: 4}, {Code: equal, K: arch, Jf: 5},
		{Code: load, K: 0}, {Code: equal, K: unix.SYS_READ, Jf: 3},
		{Code: load, K: 32}, {Code: greater, K: largeRead, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	all := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&all)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// question and reply are struct seccomp_notif and seccomp_notif_resp.
type question struct {
	id   uint64
	_    [2]uint32
	data [64]byte
}

type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// serve answers for the disk until the command, which was started, has ended.
func (d *disk) serve(c *exec.Cmd, socket *net.UnixConn) error {
	defer shut(socket)
	_ = c.ExtraFiles[0].Close() // the command's end
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := socket.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return fmt.Errorf("the filter's descriptor: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(errors.New("no filter: the go-between has ended"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fds[0]) }()
	for {
		if ended(fds[0]) {
			return nil
		}
		var q question
		if control(fds[0], unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) != 0 {
			continue // whoever asked was interrupted
		}
		a := reply{id: q.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if d.broken.Load() {
			a.errno, a.flags = -int32(unix.EIO), 0
			d.failed.Add(1)
		}
		control(fds[0], unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
	}
}

// ended waits for a question; true: nobody is left to ask.
func ended(listener int) bool {
	for {
		poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		_, err := unix.Poll(poll, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case poll[0].Revents&unix.POLLIN != 0:
			return false
		default:
			return true
		}
	}
}

func control(fd int, request uint, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(argument))
	return errno
}
