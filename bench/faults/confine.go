//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// confined is the first argument by which this program is asked to be the go-between of confine.
const confined = "confined"

// confine has a command run where folder is a file system of its own that holds so many bytes: in a mount namespace that it sees alone, made
// in a user namespace, so that it needs no privileges where the machine allows those.
func confine(c *exec.Cmd, folder string, bytes int) {
	c.Args = append([]string{os.Args[0], confined, folder, strconv.Itoa(bytes)}, c.Args...)
	c.Path = "/proc/self/exe"
	c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
	c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// runConfined is the go-between: it mounts the folder and becomes the command. args are folder, bytes and the command.
func runConfined(args []string) error {
	if err := unix.Mount("tmpfs", args[0], "tmpfs", 0, "size="+args[1]); err != nil {
		return fmt.Errorf("a small file system for %s: %w", args[0], err)
	}
	return unix.Exec(args[2], args[2:], os.Environ())
}
