//go:build linux

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// condition is what is wrong with a link. The zero value is a good one.
type condition struct {
	// Hole swallows everything; connections stay open, and what is on its way comes when it is over, as after a cut cable.
	Hole bool
	// Delay of each direction.
	Delay time.Duration
	// BytesPerSecond of each direction; 0: as fast as it goes.
	BytesPerSecond float64
	// Loss is the share of segments lost, each way, of a link that may lose some.
	Loss float64
	// FlipEvery turns a bit round every so many bytes that come from the node, on average.
	FlipEvery int
}

const (
	chunkBytes   = 16 << 10
	queuedChunks = 1024 // what is on its way at once in a link with delay: 16 MiB
)

// link is a proxy between trainers and a node, at an address of its own.
type link struct {
	listener net.Listener
	target   string // unix socket
	running  sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mu      sync.Mutex
	now     condition
	changed chan struct{} // closed by set
	hops    map[*hop]struct{}
	losing  bool // connections from now on lead over one more, which can lose segments; see hop
}

func newLink(target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, changed: make(chan struct{}), hops: map[*hop]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// set changes what is wrong with the link, for connections that are open too.
func (l *link) set(c condition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = c
	for h := range l.hops {
		_ = h.lose(c.Loss) // one that is closed loses nothing more
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// mayLose lets the link lose segments.
func (l *link) mayLose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.losing = true
}

func (l *link) condition() (condition, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now, l.changed
}

// close cuts all connections and waits until nothing runs any more.
func (l *link) close() {
	l.cancel()
	_ = l.listener.Close()
	l.running.Wait()
}

func (l *link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.carry(c) })
	}
}

// carry serves one connection until either end closes it.
func (l *link) carry(trainer net.Conn) {
	defer shut(trainer)
	if l.pass(l.ctx) != nil {
		return
	}
	node, err := net.Dial("unix", l.target)
	if err != nil {
		return
	}
	defer shut(node)
	l.mu.Lock()
	losing := l.losing
	l.mu.Unlock()
	if !losing {
		l.join(trainer, node, l.hold)
		return
	}
	h, err := l.newHop()
	if err != nil {
		return
	}
	defer l.leave(h)
	var both sync.WaitGroup
	both.Go(func() { l.join(trainer, h.near, l.hold) })
	both.Go(func() { l.join(h.far, node, func(context.Context, chunk, bool) error { return nil }) })
	both.Wait()
}

// join carries both directions between two connections until either ends, then ends the other.
func (l *link) join(trainer, node net.Conn, hold holder) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		shut(trainer)
		shut(node)
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { defer cancel(); pump(ctx, node, trainer, false, hold) })
	both.Go(func() { defer cancel(); pump(ctx, trainer, node, true, hold) })
	both.Wait()
}

// holder does to a chunk what happens to it on its way.
type holder func(ctx context.Context, c chunk, fromNode bool) error

// shut closes a connection, which may be closed.
func shut(c net.Conn) { _ = c.Close() }

// chunk is some bytes and when they came.
type chunk struct {
	data []byte
	came time.Time
}

// pump carries one direction.
func pump(ctx context.Context, to, from net.Conn, fromNode bool, hold holder) {
	queue := make(chan chunk, queuedChunks)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		for {
			data := make([]byte, chunkBytes)
			n, err := from.Read(data)
			if n > 0 {
				select {
				case queue <- chunk{data[:n], time.Now()}:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	for c := range queue {
		if hold(ctx, c, fromNode) != nil {
			break
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	shut(from) // so that the reader ends
	for range queue {
	}
	reader.Wait()
}

// hold does to a chunk what the link does to it.
func (l *link) hold(ctx context.Context, c chunk, fromNode bool) error {
	now, _ := l.condition()
	wait := now.Delay - time.Since(c.came)
	if now.BytesPerSecond > 0 {
		wait = max(wait, 0) + time.Duration(float64(len(c.data))/now.BytesPerSecond*float64(time.Second))
	}
	if now.FlipEvery > 0 && fromNode && rand.Float64() < float64(len(c.data))/float64(now.FlipEvery) {
		c.data[rand.IntN(len(c.data))] ^= 1 << rand.IntN(8)
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	return l.pass(ctx)
}

// pass waits while the link is a hole.
func (l *link) pass(ctx context.Context) error {
	for {
		now, changed := l.condition()
		if !now.Hole {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.New("the link was closed")
		}
	}
}

// sleep waits, or returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
