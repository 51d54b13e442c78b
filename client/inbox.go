package client

import "sync"

// inbox carries events to the goroutine that owns a fleet's state. Posting never blocks, so it may be done from any callback.
type inbox struct {
	wake chan struct{}

	mu     sync.Mutex
	closed bool
	events []func()
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post queues an event; false when nobody will handle it any more.
func (b *inbox) post(event func()) bool {
	if !b.put(event) {
		return false
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return true
}

// put is post for an event that changes nothing until the next decision: it is handled right before that, within a tick.
func (b *inbox) put(event func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.events = append(b.events, event)
	}
	return !b.closed
}

// take empties the inbox. With last set, nothing is accepted afterwards.
func (b *inbox) take(last bool) []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events, b.closed = nil, b.closed || last
	return events
}
