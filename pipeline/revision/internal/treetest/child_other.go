//go:build !linux

package treetest

import "syscall"

// EndWithParent does nothing here: such a process is ended by the test.
func EndWithParent() *syscall.SysProcAttr { return nil }
