package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// contestant is one way from a sender to a receiver.
type contestant struct {
	Name string `json:"name"`
	// Kind is "raw": a plain socket at both ends, "node": a node and the client in Go, or "trainer": a node and a training process.
	Kind string `json:"kind"`
	// Network is "tcp" or "unix"; Congestion the sender's congestion control for tcp.
	Network    string `json:"network"`
	Congestion string `json:"congestion,omitempty"`
}

// contestants are all kinds over each congestion control that this kernel offers and, on one machine, over a unix socket, raw ones first.
func contestants(trainers, oneMachine bool) []contestant {
	kinds := []string{"raw", "node"}
	if trainers {
		kinds = append(kinds, "trainer")
	}
	var all []contestant
	for _, c := range []string{"cubic", "bbr"} {
		if slices.Contains(strings.Fields(firstLine("/proc/sys/net/ipv4/tcp_available_congestion_control")), c) {
			for _, kind := range kinds {
				all = append(all, contestant{kind + " tcp " + c, kind, "tcp", c})
			}
		}
	}
	if !oneMachine {
		return all
	}
	for _, kind := range kinds {
		all = append(all, contestant{kind + " unix", kind, "unix", ""})
	}
	return all
}

// round is one measurement.
type round struct {
	Contestant  string  `json:"contestant"`
	GBPerSecond float64 `json:"gb_per_second"`
	// Receiver and Sender are CPU-seconds per GB; a training process counts with its agent.
	Receiver float64 `json:"receiver_cpu_seconds_per_gb"`
	Sender   float64 `json:"sender_cpu_seconds_per_gb"`
}

// measure runs all rounds, every other one backwards, so that slow changes of the machine hit all contestants alike.
func (o *options) measure(r *report) error {
	rest := newOthers()
	defer func() { r.Others = rest.cores() }()
	for i := range o.rounds {
		turn := slices.Clone(r.Contestants)
		if i%2 == 1 {
			slices.Reverse(turn)
		}
		for _, c := range turn {
			m, err := o.match(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			r.Rounds = append(r.Rounds, m)
		}
	}
	return nil
}

// match runs one sender and one receiver.
func (o *options) match(c contestant) (round, error) {
	sender, err := o.startSender(c)
	if err != nil {
		return round{}, err
	}
	defer sender.end()
	addr, err := sender.line()
	if err != nil {
		return round{}, err
	}
	receiver, err := o.startReceiver(c, addr)
	if err != nil {
		return round{}, err
	}
	defer receiver.end()
	if _, err := receiver.line(); err != nil { // it is warm and measures from now on
		return round{}, err
	}
	before, err := sender.ask()
	if err != nil {
		return round{}, err
	}
	text, err := receiver.line()
	if err != nil {
		return round{}, err
	}
	after, err := sender.ask()
	if err != nil {
		return round{}, err
	}
	var got received
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return round{}, err
	}
	gb := float64(got.Bytes) / 1e9
	return round{Contestant: c.Name, GBPerSecond: gb / got.Seconds, Receiver: got.CPU / gb, Sender: (after - before) / gb}, nil
}

func (o *options) startSender(c contestant) (*child, error) {
	kind := c.Kind
	if kind == "trainer" {
		kind = "node"
	}
	return o.startSelf(strings.Fields(o.via), "--role", "send", "--kind", kind, "--network", c.Network, "--congestion", c.Congestion, "--host", o.host)
}

func (o *options) startReceiver(c contestant, addr string) (*child, error) {
	if c.Kind != "trainer" {
		return o.startSelf(nil, "--role", "receive", "--kind", c.Kind, "--network", c.Network, "--addr", addr)
	}
	if c.Network == "unix" {
		addr = "unix:" + addr
	}
	return start(o.python, "bench/trainer.py", "--receive", addr, "--samples", strconv.Itoa(o.samples), "--seconds", fmt.Sprint(o.seconds))
}

// startSelf starts this program by a command that starts others, if there is one.
func (o *options) startSelf(via []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := slices.Concat(via, []string{self}, args, []string{"--samples", strconv.Itoa(o.samples), "--seconds", fmt.Sprint(o.seconds)})
	return start(command[0], command[1:]...)
}

// child is a sender or a receiver. It speaks lines; a line sent to a sender is a question for its CPU time.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// longest is how long a child may live.
const longest = 2 * time.Minute

func start(program string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...)}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	time.AfterFunc(longest, func() { _ = c.cmd.Process.Kill() })
	return c, nil
}

func (c *child) line() (string, error) {
	if !c.out.Scan() {
		return "", fmt.Errorf("%v ended early", c.cmd.Args)
	}
	return c.out.Text(), nil
}

func (c *child) ask() (float64, error) {
	if _, err := fmt.Fprintln(c.in); err != nil {
		return 0, err
	}
	text, err := c.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// end closes the child's input, which ends it, and waits.
func (c *child) end() {
	_ = c.in.Close()
	timer := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer timer.Stop()
	_ = c.cmd.Wait()
}
