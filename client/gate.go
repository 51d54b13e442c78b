package client

import (
	"context"
	"sync"
)

// gate lets the loop of a member connect, or keeps it from doing so. The zero value is shut.
type gate struct {
	mu     sync.Mutex
	opened bool
	open   chan struct{} // closed while the gate is open
}

func (g *gate) setOpen(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open == g.opened:
	case open:
		close(g.openChannel())
	default:
		g.open = nil
	}
	g.opened = open
}

// openChannel is closed while the gate is open. mu is held.
func (g *gate) openChannel() chan struct{} {
	if g.open == nil {
		g.open = make(chan struct{})
	}
	return g.open
}

// wait returns when the gate is open or ctx ends.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	open := g.openChannel()
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}
