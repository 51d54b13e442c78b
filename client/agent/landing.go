package agent

import "sync"

// landings is memory of the agent's own in which a batch arrives from a second node while the first may still write the slot. There is
// enough for two at a time; it is kept for the next ones.
type landings struct {
	mu   sync.Mutex
	lent int
	free [][]byte
}

const mostLandings = 2

// take lends n bytes; nil if as many as there may be are lent.
func (l *landings) take(n int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent == mostLandings {
		return nil
	}
	l.lent++
	if k := len(l.free); k > 0 {
		b := l.free[k-1]
		l.free = l.free[:k-1]
		if len(b) >= n {
			return b[:n]
		}
	}
	return make([]byte, n)
}

// give takes memory back; nil is none.
func (l *landings) give(b []byte) {
	if b == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent--
	l.free = append(l.free, b[:cap(b)])
}
