package treetest

import "syscall"

// EndWithParent has the kernel end a process when the thread that started it ends, at the latest with the test's
// process, however that ends. A test that starts one locks its goroutine to its thread.
func EndWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
