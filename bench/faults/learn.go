//go:build linux

package main

import (
	"context"
	"time"
)

// learn takes the undisturbed stream: the same job on this machine alone, without nodes, for so many samples at least.
func (m *matrix) learn(ctx context.Context, enough float64) error {
	t, err := m.train(settings{Source: m.data, Batch: 32, Ranks: 1})
	if err != nil {
		return err
	}
	defer t.kill()
	for epochs := uint32(0); ; {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		lines, err := t.said()
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			continue
		}
		m.samples = 0
		for _, l := range lines {
			if l.Epoch == 0 {
				m.samples += uint64(len(l.Samples))
			}
		}
		epochs = lines[len(lines)-1].Epoch
		if epochs > 0 && float64(epochs-1)*float64(m.samples) > enough {
			m.undisturbed = stream{}
			for _, l := range lines {
				m.undisturbed.add(l, m.samples)
			}
			return nil
		}
	}
}
