package dataset

import (
	"fmt"
	"runtime/debug"
)

// AppendKeys appends the keys of all samples to b, in order and each with a zero byte behind it, which no key contains.
func (s *Snapshot) AppendKeys(b []byte) (_ []byte, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return nil, ErrClosed
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	return s.manifest.appendKeys(b)
}

// appendKeys reads each block once, where at reads a block up to its sample.
func (m *manifest) appendKeys(b []byte) ([]byte, error) {
	key := make([]byte, 0, maxKeyBytes)
	for i := 0; i < m.samples; i += perBlock {
		block := u64(m.index, 8*(i/perBlock))
		if block > uint64(len(m.blocks)) {
			return nil, fmt.Errorf("%w: sample %d", errDamaged, i)
		}
		c := cursor{rest: m.blocks[block:], key: key[:0]}
		for k := i; k < min(i+perBlock, m.samples); k++ {
			var ok bool
			if c, ok = c.next(); !ok || !isLocal(c.key) {
				return nil, fmt.Errorf("%w: sample %d", errDamaged, k)
			}
			b = append(append(b, c.key...), 0)
		}
	}
	return b, nil
}
