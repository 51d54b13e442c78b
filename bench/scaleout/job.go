package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
)

// rank is one rank of the job: the batches of its Loader.
type rank struct {
	loader *loader.Loader
	next   func() (*loader.Batch, error, bool)
	stop   func()
}

// take takes a batch.
func (r *rank) take() error {
	b, err, ok := r.next()
	switch {
	case !ok:
		return errors.New("an epoch ended")
	case err == nil:
		b.Release()
	}
	return err
}

// measure starts so many nodes and a job on them, and returns what that gets, in samples a second.
func (o *options) measure(ctx context.Context, count int) (float64, error) {
	var addrs []string
	for range count {
		n, err := o.start()
		if err != nil {
			return 0, err
		}
		defer n.end()
		addrs = append(addrs, n.addr)
	}
	var ranks []*rank
	for k := range o.ranks {
		l, err := loader.New(loader.Options{
			Options: client.Options{Plan: `{"source": {"root": "` + root + `"}, "shuffle": true}`, Job: "scaleout", Nodes: addrs},
			Batch:   o.batch, Rank: k, Ranks: o.ranks,
		})
		if err != nil {
			return 0, err
		}
		defer l.Close()
		r := &rank{loader: l}
		r.next, r.stop = iter.Pull2(l.Batches(ctx))
		defer r.stop()
		ranks = append(ranks, r)
	}
	if _, err := o.steps(ranks, o.warm); err != nil {
		return 0, err
	}
	return o.steps(ranks, o.watch)
}

// steps lets all ranks step together for a while, and returns samples a second. A step ends when each has its batch.
func (o *options) steps(ranks []*rank, d time.Duration) (float64, error) {
	began, samples := time.Now(), 0
	for time.Since(began) < d {
		errs := make([]error, len(ranks))
		var step sync.WaitGroup
		for k, r := range ranks {
			step.Go(func() { errs[k] = r.take() })
		}
		step.Wait()
		if err := errors.Join(errs...); err != nil {
			return 0, fmt.Errorf("a step: %w", err)
		}
		samples += len(ranks) * o.batch
	}
	return float64(samples) / time.Since(began).Seconds(), nil
}
