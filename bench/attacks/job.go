//go:build linux

package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/feedwater-io/feedwater/client"
	"github.com/feedwater-io/feedwater/client/loader"
	"github.com/feedwater-io/feedwater/client/node"
)

const jobPlan = `{"source": {"root": "` + root + `"}, "seed": 1, "shuffle": true, "transforms": [{"op": "RandomResizedCrop", "size": [224, 224]}, {"op": "RandomHorizontalFlip"}]}`

// job takes batches as fast as they come.
type job struct {
	loader  *loader.Loader
	stop    context.CancelFunc
	running sync.WaitGroup
	samples atomic.Int64 // taken

	mu  sync.Mutex
	err error // why it ended
}

// startJob starts a job with one rank, which takes batches of that many samples.
func startJob(ctx context.Context, n *served, batch int) (*job, error) {
	l, err := loader.New(loader.Options{
		Options: client.Options{Plan: jobPlan, Job: "beside", Nodes: []string{n.addr}, Dialing: node.DialOptions{
			Files: &node.TLSFiles{CA: n.papers.CA}, TokenFile: n.tokens,
		}},
		Batch: batch,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	j := &job{loader: l, stop: stop}
	j.running.Go(func() { j.run(ctx) })
	return j, nil
}

func (j *job) run(ctx context.Context) {
	for { // epochs
		for b, err := range j.loader.Batches(ctx) {
			if err != nil {
				j.mu.Lock()
				j.err = err
				j.mu.Unlock()
				return
			}
			j.samples.Add(int64(b.Count))
			b.Release()
		}
	}
}

// failed is why the job ended, if it did.
func (j *job) failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil || errors.Is(j.err, context.Canceled) {
		return nil
	}
	return j.err
}

func (j *job) close() {
	j.stop()
	j.running.Wait()
	j.loader.Close()
}
