//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/feedwater-io/feedwater/server/servertest"
)

const (
	jobToken     = "the-job-0123456789abcdef"
	insiderToken = "insider-0123456789abcdef"
	root         = "photos"
	// insiders are let in, and count little where they want what the job wants.
	rules        = `{job: {roots: ["*"]}, insider: {roots: ["*"], weight: 0.05}}`
	startTimeout = time.Minute
)

// papers are the certificates of a row.
type papers struct {
	CA                       string
	Node, Next               servertest.Pair // what the node shows now, and what it might
	Good, Expired, Foreigner servertest.Pair
}

// served is a process of `feedwater serve`.
type served struct {
	addr    string
	scratch string
	papers  papers
	tokens  string // file of the job's
	process *exec.Cmd
	reading sync.WaitGroup
}

// files makes certificates where testing.T would.
type files struct {
	dir string
	err error
}

func (f *files) Helper() {}

// Fatal remembers an error, and goes on: whoever made certificates looks at it.
func (f *files) Fatal(args ...any) { f.err = errors.Join(f.err, errors.New(fmt.Sprint(args...))) }

func (f *files) TempDir() string {
	dir, err := os.MkdirTemp(f.dir, "certificate")
	f.err = errors.Join(f.err, err)
	return dir
}

func newPapers(dir string) (papers, error) {
	f := &files{dir: dir}
	ca, other := servertest.NewAuthority(f, "ca"), servertest.NewAuthority(f, "other")
	p := papers{
		CA: ca.File, Node: ca.Issue("node", time.Hour), Next: ca.Issue("node", time.Hour),
		Good: ca.Issue("job", time.Hour), Expired: ca.Issue("job", -time.Hour), Foreigner: other.Issue("job", time.Hour),
	}
	return p, f.err
}

// startNode returns when it listens.
func (o *options) startNode(ctx context.Context) (*served, error) {
	scratch, err := os.MkdirTemp(o.scratch, "node")
	if err != nil {
		return nil, err
	}
	n := &served{scratch: scratch, tokens: filepath.Join(scratch, "token")}
	if n.papers, err = newPapers(scratch); err != nil {
		return nil, err
	}
	all := filepath.Join(scratch, "tokens")
	if err := errors.Join(os.WriteFile(all, []byte("job "+jobToken+"\ninsider "+insiderToken+"\n"), 0o600), os.WriteFile(n.tokens, []byte(jobToken+"\n"), 0o600)); err != nil {
		return nil, err
	}
	n.process = exec.Command(o.program, append([]string{
		"serve", "--data", root + "=" + o.data, "--listen", "127.0.0.1:0", "--cache-dir", filepath.Join(scratch, "cache"),
		"--tls-cert", n.papers.Node.Cert, "--tls-key", n.papers.Node.Key, "--client-ca", n.papers.CA, "--token-file", all, "--identities", rules,
	}, strings.Fields(o.serve)...)...)
	n.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stderr, err := n.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	told := make(chan string, 1)
	n.reading.Go(func() { n.read(stderr, told, o.verbose) })
	select {
	case n.addr = <-told:
	case <-time.After(startTimeout):
	case <-ctx.Done():
	}
	if n.addr == "" {
		n.close()
		return nil, errors.New("the node did not start; --verbose shows what it said")
	}
	return n, nil
}

// read finds the address in what the node says, and reads on.
func (n *served) read(stderr io.Reader, told chan<- string, verbose bool) {
	defer close(told)
	found := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if verbose {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
		if _, rest, ok := strings.Cut(lines.Text(), "msg=listening addr="); ok && !found {
			found = true
			told <- strings.Fields(rest)[0]
		}
	}
}

// close ends the process and waits for it.
func (n *served) close() {
	_ = n.process.Process.Kill()
	n.reading.Wait()
	_ = n.process.Wait()
	_ = os.RemoveAll(n.scratch)
}

const ticks = 100 // of the kernel's clock in a second

// coreSeconds is what the process has taken so far, within the kernel too.
func (n *served) coreSeconds() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	total := 0.0
	for _, f := range fields[11:13] {
		v, _ := strconv.ParseFloat(f, 64)
		total += v / ticks
	}
	return total
}

// memory is what the process has of it now, in bytes.
func (n *served) memory() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.process.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}
