package simulation

import (
	"io"
	"net"
	"sync"
	"time"
)

// link is a connection between a trainer and a node. What passes takes a while, the same for all of it, so that it does
// not matter how the transport cut what it wrote at one instant.
type link struct {
	near, far net.Conn // to the trainer, and to the node
	up, down  *lane
}

// newLink joins two connections, which it closes in the end. Its goroutines are counted in running.
func newLink(near, far net.Conn, up, down time.Duration, running *sync.WaitGroup) *link {
	l := &link{near: near, far: far, up: newLane(up), down: newLane(down)}
	running.Go(func() { l.up.take(near) })
	running.Go(func() { l.up.give(far); time.Sleep(up); l.cut() }) // the end comes after what was sent before
	running.Go(func() { l.down.take(far) })
	running.Go(func() { l.down.give(near); time.Sleep(down); l.cut() })
	return l
}

// cut breaks the connection; what is on its way is lost.
func (l *link) cut() {
	l.near.Close()
	l.far.Close()
	l.up.end(true)
	l.down.end(true)
}

// set holds both lanes up, or lets each byte take a while; 0: none.
func (l *link) set(held bool, perByte time.Duration) {
	l.up.set(held, perByte)
	l.down.set(held, perByte)
}

// lane carries bytes one way. It takes in all that comes: gRPC bounds what is on its way.
type lane struct {
	latency time.Duration

	mu      sync.Mutex
	change  sync.Cond
	queue   []parcel
	held    bool
	perByte time.Duration // what a byte takes besides
	free    time.Time     // when all that was taken in will have passed
	ended   bool          // nothing comes any more
	broken  bool          // and what is left is lost
}

// parcel is bytes that were sent at one instant and arrive at one.
type parcel struct {
	bytes        []byte
	sent, arrive time.Time
}

func newLane(latency time.Duration) *lane {
	l := &lane{latency: latency}
	l.change.L = &l.mu
	return l
}

// take reads until the connection ends.
func (l *lane) take(from io.Reader) {
	defer l.end(false)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		l.push(buf[:n])
	}
}

func (l *lane) push(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	last := len(l.queue) - 1
	if last < 0 || !l.queue[last].sent.Equal(now) {
		l.queue = append(l.queue, parcel{sent: now})
		last++
	}
	p := &l.queue[last]
	p.bytes = append(p.bytes, b...)
	l.free = later(l.free, now).Add(time.Duration(len(b)) * l.perByte)
	p.arrive = l.free.Add(l.latency)
	l.change.Broadcast()
}

// give writes what arrives until there is nothing more.
func (l *lane) give(to io.Writer) {
	for {
		b, ok := l.pop()
		if !ok {
			return
		}
		if _, err := to.Write(b); err != nil {
			l.end(true)
			return
		}
	}
}

// pop waits for the next bytes to arrive.
func (l *lane) pop() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for (len(l.queue) == 0 && !l.ended || l.held) && !l.broken {
			l.change.Wait()
		}
		if len(l.queue) == 0 || l.broken {
			return nil, false
		}
		p := l.queue[0]
		if !p.arrive.After(time.Now()) {
			l.queue = l.queue[1:]
			return p.bytes, true
		}
		l.await(p.arrive)
	}
}

// await waits until a time or a change: how long bytes take may change while they are on their way. mu is held.
func (l *lane) await(t time.Time) {
	timer := time.AfterFunc(time.Until(t), l.change.Broadcast)
	defer timer.Stop()
	l.change.Wait()
}

// set changes how the lane is. What is on its way begins it anew, what was sent at different times a little apart.
func (l *lane) set(held bool, perByte time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held == l.held && perByte == l.perByte {
		return
	}
	l.held, l.perByte, l.free = held, perByte, time.Now()
	for i := range l.queue {
		p := &l.queue[i]
		l.free = l.free.Add(time.Microsecond + time.Duration(len(p.bytes))*perByte)
		p.arrive = l.free.Add(l.latency)
	}
	l.change.Broadcast()
}

func (l *lane) end(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.broken = true, l.broken || broken
	l.change.Broadcast()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
