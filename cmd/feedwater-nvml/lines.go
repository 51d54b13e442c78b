package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/driver"
	"github.com/feedwater-io/feedwater/cmd/feedwater-nvml/internal/gpu"
)

// run prints lines until it is told to end, which is no error.
func run(o options) error {
	out, err := takeStdout()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // until the process ends
		awaitEnd(out)
		cancel()
	}()
	p := printer{out: out, timeout: o.timeout, driver: &driver.Driver{}}
	err = p.print(ctx, o)
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// printer turns readings into lines.
type printer struct {
	out     *os.File
	timeout time.Duration
	driver  *driver.Driver
	last    time.Time // of the reading before
}

func (p *printer) print(ctx context.Context, o options) error {
	failed, err := await(ctx, p.timeout, p.driver.Open)
	if err != nil {
		return p.hangs(ctx, err)
	}
	if failed != nil {
		return p.write(ctx, gpu.Line{Time: time.Now(), Reason: failed.Error()})
	}
	if _, err := p.read(ctx); err != nil {
		return p.hangs(ctx, err)
	}
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		line, err := p.read(ctx)
		if err != nil {
			return p.hangs(ctx, err)
		}
		if err := p.write(ctx, line); err != nil || o.once {
			return err
		}
	}
}

// read makes the next line.
func (p *printer) read(ctx context.Context) (gpu.Line, error) {
	gpus, err := await(ctx, p.timeout, p.driver.Read)
	if err != nil {
		return gpu.Line{}, err
	}
	now := time.Now()
	line := gpu.Line{Time: now, Driver: p.driver.Version(), HostPIDs: new(driver.HostPIDs()), GPUs: gpus}
	if !p.last.IsZero() {
		line.IntervalSeconds = now.Sub(p.last).Seconds()
	}
	p.last = now
	return line, nil
}

// hangs says in a last line what does not answer.
func (p *printer) hangs(ctx context.Context, err error) error {
	if !errors.Is(err, errHangs) {
		return err
	}
	err = fmt.Errorf("the driver has not answered for %v: %s", p.timeout, p.driver.Busy())
	return errors.Join(err, p.write(ctx, gpu.Line{Time: time.Now(), Reason: err.Error()}))
}

// write prints a line. It returns early when ctx ends, since a reader that does not read can hold it up for ever.
func (p *printer) write(ctx context.Context, line gpu.Line) error {
	if line.GPUs == nil {
		line.GPUs = []gpu.GPU{}
	}
	line.Time = line.Time.UTC()
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("line: %w", err)
	}
	failed, err := await(ctx, 0, func() error {
		_, err := p.out.Write(append(text, '\n'))
		return err
	})
	return errors.Join(err, failed)
}

var errHangs = errors.New("no answer in time")

// await returns what f does, or an error when ctx ends or limit has passed (0: none). Then f is left behind: it is for calls that
// nothing can interrupt, in a process that is about to end.
func await[T any](ctx context.Context, limit time.Duration, f func() T) (T, error) {
	answer := make(chan T, 1)
	go func() { answer <- f() }()
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	var none T
	select {
	case v := <-answer:
		return v, nil
	case <-late:
		return none, errHangs
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
