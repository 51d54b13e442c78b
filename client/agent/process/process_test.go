package process_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/feedwater-io/feedwater/client/agent/process"
)

func TestExiting(t *testing.T) {
	child := exec.Command("true")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, child.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil { // it is left to be reaped
		t.Fatal(err)
	}
	if !process.IsExiting(child.Process.Pid) {
		t.Error("a process that was not reaped yet is said to live")
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if !process.IsExiting(child.Process.Pid) || process.IsExiting(os.Getpid()) || process.IsExiting(0) {
		t.Error("the living and the dead are confused")
	}
}
