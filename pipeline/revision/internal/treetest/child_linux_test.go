package treetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whoever starts a process and is killed takes it with him.
func TestEndWithParent(t *testing.T) {
	if os.Getenv("FEEDWATER_TEST_PARENT") != "" {
		runtime.LockOSThread()
		child := exec.Command("sleep", "600")
		child.SysProcAttr = EndWithParent()
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("child", child.Process.Pid)
		_ = child.Wait()
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=TestEndWithParent")
	parent.Env = append(os.Environ(), "FEEDWATER_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "child ")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for end := time.Now().Add(30 * time.Second); lives(pid); runtime.Gosched() { // the kernel has told it already
		if time.Now().After(end) {
			t.Fatalf("process %d goes on without the one that started it", pid)
		}
	}
}

// lives tells whether a process runs: one that has ended may not have been reaped yet.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}
