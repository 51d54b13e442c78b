package client

import (
	"context"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// askScalerEvery is how often a trainer that has no node says so; a scaler forgets one that does not for three times as long.
const askScalerEvery = 2 * time.Second

// scalerCalls ask a fleet's scaler for nodes, if it has one. They belong to the fleet's goroutine, but for waiting.
type scalerCalls struct {
	job     *job
	last    time.Time
	waiting atomic.Bool
}

// ask asks the scaler for nodes, unless that was done a short time ago. It does not wait for the answer, which says nothing.
func (c *scalerCalls) ask(now time.Time) {
	o := &c.job.options
	if o.Scaler == nil || now.Sub(c.last) < askScalerEvery || c.waiting.Load() {
		return
	}
	c.last = now
	c.waiting.Store(true)
	c.job.keepers.Go(func() {
		defer c.waiting.Store(false)
		ctx, cancel := context.WithTimeout(c.job.ctx, askScalerEvery)
		defer cancel()
		_, _ = o.Scaler.Open(ctx, &pb.OpenRequest{Job: o.Job})
	})
}

// close lets go of the scaler's connection.
func (c *scalerCalls) close() {
	if c.job.options.Scaler == nil {
		return
	}
	if err := c.job.options.Scaler.Close(); err != nil {
		c.job.log.Warn("closing the scaler's connection failed", "err", err)
	}
}
