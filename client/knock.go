package client

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// knockEvery is how often a trainer that has no node says so; a scaler forgets one that does not for three times as long.
const knockEvery = 2 * time.Second

// knocks is when a fleet asked its scaler for nodes last.
type knocks struct {
	last    time.Time
	waiting atomic.Bool
}

// knock asks the scaler for nodes if there is none and something waits for one. It does not wait for the answer, which says nothing.
func (f *Fleet) knock(now time.Time) {
	idle := len(f.wants) == 0 && f.info.Load() != nil
	switch {
	case f.options.Scaler == nil, idle, now.Sub(f.knocks.last) < knockEvery, f.knocks.waiting.Load():
		return
	case slices.ContainsFunc(f.live, func(m *member) bool { return m.node != f.options.Local }):
		return
	}
	f.knocks.last = now
	f.knocks.waiting.Store(true)
	f.keepers.Go(func() {
		defer f.knocks.waiting.Store(false)
		ctx, cancel := context.WithTimeout(f.ctx, knockEvery)
		defer cancel()
		_, _ = f.options.Scaler.Open(ctx, &pb.OpenRequest{Job: f.options.Job})
	})
}

// closeScaler lets go of the scaler's connection.
func (f *Fleet) closeScaler() {
	if f.options.Scaler == nil {
		return
	}
	if err := f.options.Scaler.Close(); err != nil {
		f.log.Warn("closing the scaler's connection failed", "err", err)
	}
}
