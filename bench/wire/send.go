package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/feedwater-io/feedwater/server"
)

// send listens, prints its address, sends to whoever connects, and answers each line of its input with its CPU time. It ends with its
// input.
func (o *options) send() error {
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := o.listen(dir)
	if err != nil {
		return err
	}
	stop := o.sendRaw
	if o.kind == "node" {
		stop = o.sendBatches
	}
	end := stop(l, dir)
	defer end()
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(cpuSeconds(syscall.RUSAGE_SELF))
	}
	return nil
}

func (o *options) listen(dir string) (net.Listener, error) {
	if o.network == "unix" {
		return net.Listen("unix", filepath.Join(dir, "socket"))
	}
	lc := net.ListenConfig{}
	if o.congestion != "" {
		lc.Control = congestion(o.congestion)
	}
	return lc.Listen(context.Background(), "tcp", net.JoinHostPort(o.host, "0"))
}

// congestion sets the congestion control of a listener and of what it accepts.
func congestion(name string) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
		}); e != nil {
			return e
		}
		return err
	}
}

// sendRaw writes batches without end, from as many buffers as a node has slots in use: larger than the cache together.
func (o *options) sendRaw(l net.Listener, _ string) (end func()) {
	ring := make([][]byte, 4)
	for i := range ring {
		ring[i] = noise(o.samples * sampleBytes)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		for i := 0; ; i++ {
			pieces := net.Buffers{}
			for b := ring[i%len(ring)]; len(b) > 0; b = b[min(len(b), 1<<20):] {
				pieces = append(pieces, b[:min(len(b), 1<<20)])
			}
			if _, err := pieces.WriteTo(c); err != nil {
				return
			}
		}
	}()
	return func() { _ = l.Close() }
}

// sendBatches is a node whose batches are ready.
func (o *options) sendBatches(l net.Listener, dir string) (end func()) {
	s := server.New(server.Options{Engine: &ready{sums: map[*byte]uint32{}}, Roots: map[string]string{"ready": dir}})
	g := grpc.NewServer(s.GRPCOptions()...)
	s.Register(g)
	go func() { _ = g.Serve(l) }()
	return func() {
		g.Stop()
		s.Close()
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	var seed [32]byte
	_, _ = io.ReadFull(rand.NewChaCha8(seed), b)
	return b
}
