package batchmem

import (
	"net"
	"time"
)

const (
	gatherBytes   = 512 << 10             // that one write takes, if as much comes
	gatherFor     = time.Millisecond      // that something waits at most, or twice as long, for more that was to come and did not
	lastWordsTime = 10 * time.Millisecond // that Close may take
	headBytes     = 64                    // at most, of what is copied without a look at whether it lies in a slot
	copiedBytes   = 16 << 10              // of what does not lie in a slot; it is little
)

// writevConn is a plaintext connection that writes at once what gRPC, which has no buffer of its own then, writes in
// small parts: heads of frames, which are copied, and the leased slots, by reference. A slot is held until what was
// referred to is written.
//
// gRPC does not say when it has nothing more to write. What ends a batch is written at once; behind the rest of a batch
// more is to come, and only if it does not is the rest written by the clock; all else is written by a goroutine that
// runs when the one that writes rests.
//
// One goroutine writes at a time. An error is that of all later writes.
type writevConn struct {
	net.Conn
	memory *Memory // whose leases are referred to; nil: everything is copied

	writing chanMutex
	frame   dataFrame
	parts   net.Buffers // in order, each of copied or of one of held
	bytes   int         // of parts
	copied  []byte
	run     int // where in copied the last part begins; -1: it is no part of it
	held    []*lease
	queue   net.Buffers // parts, while they are written
	writes  int
	err     error

	flushing     bool // a flush is on its way
	clock        *time.Timer
	ticking      bool // the clock does
	writesAtTick int  // writes when it was set
}

// GatherWrites returns a connection that writes to c at once what gRPC writes in small parts, and refers to leased
// slots of m. Only sockets take several parts at once; for others all is copied.
func GatherWrites(c net.Conn, m *Memory) net.Conn { return newWritevConn(c, m) }

func newWritevConn(c net.Conn, m *Memory) *writevConn {
	g := &writevConn{Conn: c, writing: make(chanMutex, 1), run: -1}
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		g.memory, g.copied = m, make([]byte, 0, copiedBytes)
	default:
		g.copied = make([]byte, 0, gatherBytes)
	}
	return g
}

// Write implements net.Conn. It keeps p if it lies in a leased slot, which it holds then.
func (g *writevConn) Write(p []byte) (int, error) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.err != nil {
		return 0, g.err
	}
	whole := g.frame.advance(p)
	var l *lease
	if len(p) > headBytes {
		l = g.holdLease(p)
	}
	if l != nil {
		g.addLeased(p, l)
	} else {
		g.addCopied(p)
	}
	switch {
	case len(g.parts) == 0:
	case whole && l == nil:
		g.flushSoon()
	default:
		g.startClock()
	}
	return len(p), g.err
}

// Close implements net.Conn. Last words, as why a connection ends, are written unless that takes longer than
// lastWordsTime; what is left of batches is not. Nothing is held any more: gRPC keeps a connection for a while.
func (g *writevConn) Close() error {
	if g.writing.TryLock() {
		if len(g.held) == 0 && len(g.parts) > 0 {
			_ = g.SetWriteDeadline(time.Now().Add(lastWordsTime))
			g.writeParts()
		}
		g.writing.Unlock()
	}
	err := g.Conn.Close() // ends a write on its way
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.err == nil {
		g.err = net.ErrClosed
	}
	g.writeParts()
	g.copied = nil
	return err
}

// holdLease finds the lease that p is of, and keeps it until the next write. mu is held.
func (g *writevConn) holdLease(p []byte) *lease {
	if n := len(g.held); n > 0 && g.held[n-1].covers(p) {
		return g.held[n-1]
	}
	l := g.memory.holdLease(p)
	if l != nil {
		g.held = append(g.held, l)
	}
	return l
}

// addLeased adds p, a part of l. mu is held.
func (g *writevConn) addLeased(p []byte, l *lease) {
	g.parts, g.run = append(g.parts, p), -1
	if g.bytes += len(p); g.bytes >= gatherBytes || l.endsWith(p) {
		g.writeParts()
	}
}

// addCopied adds what p says. mu is held.
func (g *writevConn) addCopied(p []byte) {
	for len(p) > 0 && g.err == nil {
		at := len(g.copied)
		if g.run < 0 {
			g.parts, g.run = append(g.parts, nil), at
		}
		n := min(len(p), cap(g.copied)-at)
		g.copied = append(g.copied, p[:n]...)
		g.parts[len(g.parts)-1] = g.copied[g.run:]
		g.bytes += n
		if p = p[n:]; len(g.copied) == cap(g.copied) || g.bytes >= gatherBytes {
			g.writeParts()
		}
	}
}

// flushSoon has what is there, and what comes until then, written by another goroutine. mu is held.
func (g *writevConn) flushSoon() {
	if !g.flushing {
		g.flushing = true
		go g.flushParts()
	}
}

func (g *writevConn) flushParts() {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.flushing = false
	g.writeParts()
}

// startClock sees to it that what is there is written, whatever comes. mu is held.
func (g *writevConn) startClock() {
	if g.ticking {
		return
	}
	g.ticking, g.writesAtTick = true, g.writes
	if g.clock == nil {
		g.clock = time.AfterFunc(gatherFor, g.writeWaiting)
		return
	}
	g.clock.Reset(gatherFor)
}

// writeWaiting writes what has waited since the clock was set. If something was written since, what is there now came
// later, and waits anew.
func (g *writevConn) writeWaiting() {
	g.writing.Lock()
	defer g.writing.Unlock()
	g.ticking = false
	switch {
	case len(g.parts) == 0:
	case g.writesAtTick == g.writes:
		g.writeParts()
	default:
		g.startClock()
	}
}

// writeParts writes what is there, and lets go of it, also when that fails. mu is held.
func (g *writevConn) writeParts() {
	if g.err == nil && len(g.parts) > 0 {
		g.writes++
		g.queue = g.parts
		_, g.err = g.queue.WriteTo(g.Conn)
	}
	for _, l := range g.held {
		l.release()
	}
	clear(g.held)
	clear(g.parts)
	g.held, g.parts, g.copied, g.run, g.bytes = g.held[:0], g.parts[:0], g.copied[:0], -1, 0
}

// chanMutex is a mutex that may be held for as long as a peer takes to read, and waiting for which is idle to synctest,
// as for a sync.Mutex is not.
type chanMutex chan struct{}

func (t chanMutex) Lock()   { t <- struct{}{} }
func (t chanMutex) Unlock() { <-t }

func (t chanMutex) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// dataFrame follows the data frames of what gRPC writes, whose heads it writes on their own. A wrong guess costs a wait
// of gatherFor.
type dataFrame struct{ left int }

// advance reports whether a frame is whole with p.
func (f *dataFrame) advance(p []byte) bool {
	const head, kind, data = 9, 3, 0 // RFC 9113, section 4.1
	if f.left == 0 && len(p) == head && p[kind] == data {
		f.left = int(p[0])<<16 | int(p[1])<<8 | int(p[2])
		return f.left == 0
	}
	f.left = max(f.left-len(p), 0)
	return f.left == 0
}
