package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
)

// warmUp is how many batches come before the measurement: each slot was used, and its pages are there.
const warmUp = 40

// received is what a receiver measured.
type received struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"`
}

// meter counts batches: it prints a line when it is warm, and the result when the time is over.
type meter struct {
	batches int
	warm    time.Time
	cpu     float64
	bytes   int64
	limit   time.Duration
}

// add counts a batch of n bytes and reports whether to go on.
func (m *meter) add(n int) (bool, error) {
	now := time.Now()
	if m.batches++; m.batches < warmUp {
		return true, nil
	}
	if m.batches == warmUp {
		m.warm, m.cpu = now, cpuSeconds(syscall.RUSAGE_SELF)
		fmt.Println("warm")
		return true, nil
	}
	m.bytes += int64(n)
	took := now.Sub(m.warm)
	if took < m.limit {
		return true, nil
	}
	text, err := json.Marshal(received{m.bytes, took.Seconds(), cpuSeconds(syscall.RUSAGE_SELF) - m.cpu})
	fmt.Println(string(text))
	return false, err
}

func (o *options) receive() error {
	m := &meter{limit: time.Duration(o.seconds * float64(time.Second))}
	if o.kind == "node" {
		return o.receiveBatches(m)
	}
	return o.receiveRaw(m)
}

// receiveRaw reads into memory that is used again.
func (o *options) receiveRaw(m *meter) error {
	c, err := net.Dial(o.network, o.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ring := [4][]byte{}
	for i := range ring {
		ring[i] = make([]byte, o.samples*sampleBytes)
	}
	for i := 0; ; i++ {
		n, err := io.ReadFull(c, ring[i%len(ring)])
		if err != nil {
			return err
		}
		if more, err := m.add(n); !more || err != nil {
			return err
		}
	}
}

// receiveBatches is a trainer: checksums are verified, batches come in order, memory is used again.
func (o *options) receiveBatches(m *meter) error {
	runtime.GOMAXPROCS(1) // as agents begin
	addr := o.addr
	if o.network == "unix" {
		addr = "unix:" + addr
	}
	l, err := loader.New(loader.Options{
		Options: client.Options{Plan: `{"source": {"root": "ready"}, "fields": ["image"]}`, Nodes: []string{addr}, Dialing: node.DialOptions{Insecure: true}},
		Batch:   o.samples, Window: 4,
	})
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		for b, err := range l.Batches(context.Background()) {
			if err != nil {
				return err
			}
			n := len(b.Images())
			b.Release()
			if more, err := m.add(n); !more || err != nil {
				return err
			}
		}
	}
}
