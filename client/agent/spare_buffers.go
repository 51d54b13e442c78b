package agent

import "sync"

// spareBuffers is memory of the agent's own in which a batch arrives from a second node while the first may still write
// the slot. There is enough for two at a time; it is kept for the next ones.
type spareBuffers struct {
	mu   sync.Mutex
	lent int
	free [][]byte
}

const maxSpares = 2

// lendBuffer lends n bytes; nil if as many as there may be are lent.
func (s *spareBuffers) lendBuffer(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent == maxSpares {
		return nil
	}
	s.lent++
	if k := len(s.free); k > 0 {
		b := s.free[k-1]
		s.free = s.free[:k-1]
		if len(b) >= n {
			return b[:n]
		}
	}
	return make([]byte, n)
}

// returnBuffer takes memory back; nil is none.
func (s *spareBuffers) returnBuffer(b []byte) {
	if b == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent--
	s.free = append(s.free, b[:cap(b)])
}
