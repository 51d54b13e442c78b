// Command wire measures how fast batches travel from a node to a trainer's memory, against what plain sockets of the same kind do
// in the same run. The node's batches are ready, so nothing is decoded; all else is real: the server, its checksums, and as
// receivers the client in Go and, with --python, a training process with its agent. Sender and receiver are processes of their own
// on this machine. Everything the program starts ends with it.
//
//	go run ./bench/wire                                  prints a table
//	go run ./bench/wire --python .venv/bin/python        with a training process too
//	go run ./bench/wire --json                           the same for programs, with every round
//	go run ./bench/wire --via "nsenter --net=FILE" --host 10.0.0.1    with the sender in another network, where it has that address: over TCP alone
//	go run ./bench/wire --node                           a node with ready batches (root "ready"): prints its address, ends with its input
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	var o options
	o.flags(flag.CommandLine)
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "wire:", err)
		os.Exit(1)
	}
}

type options struct {
	rounds  int
	seconds float64
	samples int
	python  string
	figures string
	json    bool
	node    bool
	via     string
	host    string
	// Of the processes that the program starts.
	role, kind, network, congestion, addr string
}

func (o *options) flags(f *flag.FlagSet) {
	f.IntVar(&o.rounds, "rounds", 5, "rounds; contestants take turns within each")
	f.Float64Var(&o.seconds, "seconds", 2, "length of one measurement, after some batches to warm up")
	f.IntVar(&o.samples, "samples", 256, "samples of 224×224×3 bytes in a batch")
	f.StringVar(&o.python, "python", "", "`interpreter` with feedwater, for training processes among the receivers; FEEDWATER_BINARY names the agent")
	f.StringVar(&o.figures, "figures", "", "add the figures that have limits to this `file`, one line of JSON each")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.node, "node", false, "only be a node with ready batches")
	f.StringVar(&o.via, "via", "", "`command` that starts a command in the sender's network")
	f.StringVar(&o.host, "host", "127.0.0.1", "`address` that the sender listens on")
	f.StringVar(&o.role, "role", "", "internal: send or receive")
	f.StringVar(&o.kind, "kind", "node", "internal")
	f.StringVar(&o.network, "network", "tcp", "internal")
	f.StringVar(&o.congestion, "congestion", "", "internal")
	f.StringVar(&o.addr, "addr", "", "internal")
}

func (o *options) run() error {
	switch {
	case o.node, o.role == "send":
		return o.send()
	case o.role == "receive":
		return o.receive()
	}
	r := &report{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(), GRPC: moduleVersion("google.golang.org/grpc"),
		Command: "go run ./bench/wire " + strings.Join(os.Args[1:], " "), BatchBytes: o.samples * sampleBytes, Contestants: contestants(o.python != "", o.via == ""),
	}
	if err := o.measure(r); err != nil {
		return err
	}
	if err := r.save(o.figures); err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(os.Stdout)
}
