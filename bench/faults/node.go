//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// node is a place in the fleet: an address, and the processes that serve there one after the other.
type node struct {
	fleet *fleet
	name  string
	data  string
	// quota bounds the file system of its cache folder, in bytes; 0: that of the scratch folder.
	quota int
	// more are arguments besides those of all nodes.
	more []string
	// environment is added to that of this process.
	environment []string
	// disk of its photographs; nil: one that never breaks.
	disk *disk
	link *link

	mu      sync.Mutex
	process *exec.Cmd // nil: none runs
	exited  chan struct{}
	metrics string  // address
	decoded float64 // by processes that are gone, and by this one as it last told
	before  float64 // by those that are gone alone
	left    time.Time
	gone    time.Duration // for which none ran between two that did
}

// termination is what asks a node to end.
const termination = syscall.SIGTERM

const startTimeout = 60 * time.Second

func (n *node) socket() string { return filepath.Join(n.fleet.scratch, n.name+".sock") }

// start runs the node and returns when it listens.
func (n *node) start(ctx context.Context) error {
	cache := filepath.Join(n.fleet.scratch, n.name+".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	_ = os.Remove(n.socket())
	command := exec.Command(n.fleet.program, "serve", "--data", "photos="+n.data, "--listen", "unix:"+n.socket(), "--http", "127.0.0.1:0", "--workers", "1",
		"--test-sample-time", n.fleet.sampleTime.String(), "--cache-dir", cache)
	command.Args = append(command.Args, n.more...)
	command.Env = append(os.Environ(), n.environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if n.quota > 0 {
		confine(command, cache, n.quota)
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		return err
	}
	if err := n.spawn(command); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	told, exited := make(chan string, 2), make(chan struct{})
	n.mu.Lock()
	n.process, n.exited, n.before = command, exited, n.decoded
	n.mu.Unlock()
	n.fleet.running.Go(func() {
		defer close(exited)
		n.read(stderr, told)
		_ = command.Wait()
	})
	if err := n.await(ctx, told, exited); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.left.IsZero() {
		n.gone += time.Since(n.left)
	}
	return nil
}

// spawn starts the command, with its disk.
func (n *node) spawn(command *exec.Cmd) error {
	if n.disk == nil {
		return command.Start()
	}
	socket, err := n.disk.watch(command)
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	n.fleet.running.Go(func() {
		if err := n.disk.serve(command, socket); err != nil {
			n.fleet.log(n.name + ": " + err.Error())
		}
	})
	return nil
}

// read passes the node's log on, and the addresses of which it tells.
func (n *node) read(stderr io.Reader, told chan<- string) {
	defer close(told)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		n.fleet.log(n.name + ": " + lines.Text())
		for _, word := range []string{"msg=http ", "msg=listening "} {
			if strings.Contains(lines.Text(), word) && len(told) < cap(told) {
				_, rest, _ := strings.Cut(lines.Text(), "addr=")
				addr, _, _ := strings.Cut(rest, " ")
				told <- word + addr
			}
		}
	}
}

func (n *node) await(ctx context.Context, told <-chan string, exited <-chan struct{}) error {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	for range 2 {
		select {
		case word, ok := <-told:
			if !ok {
				return fmt.Errorf("node %s ended at its start; --verbose shows what it said", n.name)
			}
			if addr, ok := strings.CutPrefix(word, "msg=http "); ok {
				n.mu.Lock()
				n.metrics = addr
				n.mu.Unlock()
			}
		case <-exited:
			return fmt.Errorf("node %s ended at its start; --verbose shows what it said", n.name)
		case <-timeout.C:
			return fmt.Errorf("node %s did not start within %s", n.name, startTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// signal sends a signal to the process, if there is one.
func (n *node) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil {
		return nil
	}
	return n.process.Process.Signal(s)
}

// kill ends the process without a word, after a look at what it has done.
func (n *node) kill() error { return n.end(syscall.SIGKILL) }

// stop ends it in order.
func (n *node) stop() error { return n.end(syscall.SIGTERM) }

func (n *node) end(s syscall.Signal) error {
	n.look()
	if err := n.signal(s); err != nil {
		return err
	}
	n.mu.Lock()
	exited, running := n.exited, n.process != nil
	n.mu.Unlock()
	if !running {
		return nil
	}
	for {
		select {
		case <-exited:
			n.mu.Lock()
			n.process, n.left = nil, time.Now()
			n.mu.Unlock()
			return nil
		case <-time.After(20 * time.Millisecond):
			if s != syscall.SIGKILL {
				n.look()
			}
		}
	}
}

var metricsClient = http.Client{Timeout: 2 * time.Second}

// look asks the process how many samples it has decoded. One that does not answer has done what it last told.
func (n *node) look() {
	count := n.metric("feedwater_node_decoded_samples_total")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.decoded = max(n.decoded, n.before+count)
}

// metric is one number that the process tells; 0: it does not answer.
func (n *node) metric(name string) float64 {
	n.mu.Lock()
	addr, running := n.metrics, n.process != nil
	n.mu.Unlock()
	if !running {
		return 0
	}
	ask, err := http.NewRequest(http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
	if err != nil {
		return 0
	}
	if n.fleet.token != "" {
		ask.Header.Set("Authorization", "Bearer "+n.fleet.token)
	}
	page, err := metricsClient.Do(ask)
	if err != nil {
		return 0
	}
	defer func() { _ = page.Body.Close() }()
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			number, _ := strconv.ParseFloat(value, 64)
			return number
		}
	}
	return 0
}

// limitFiles bounds the files that the process may have open; those that are open stay so. 0: it opens none any more.
func (n *node) limitFiles(most uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return unix.Prlimit(n.process.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: 4096}, nil)
}
