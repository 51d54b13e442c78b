package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/server"
	"github.com/feedwater-io/feedwater/server/servertest"
)

const (
	cores = 2  // of a node
	side  = 32 // of a picture
	root  = "paced"
)

// serve is a node that makes so many samples a second, until its input ends.
func (o *options) serve() error {
	e := &servertest.Engine{
		Samples: 1 << 20, Height: side, Width: side, Cores: cores, SampleTime: time.Duration(cores / o.rate * float64(time.Second)),
	}
	s := server.New(server.Options{Engine: e, Roots: map[string]string{root: os.TempDir()}})
	g := grpc.NewServer(s.GRPCOptions()...)
	s.Register(g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	g.Stop()
	s.Close()
	e.Close()
	return <-ended
}

// node is a process that serves.
type node struct {
	addr  string
	input io.Closer
	cmd   *exec.Cmd
}

func (o *options) start() (*node, error) {
	n := &node{cmd: exec.Command(os.Args[0], "--node", "--rate", fmt.Sprint(o.rate))} //nolint:gosec // this program
	n.cmd.Stderr = os.Stderr
	input, err := n.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	n.input = input
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		n.end()
		return nil, fmt.Errorf("a node did not say where it is: %w", err)
	}
	n.addr = strings.TrimSpace(line)
	return n, nil
}

// end ends the node and waits for it.
func (n *node) end() {
	_ = n.input.Close()
	_ = n.cmd.Wait()
}
