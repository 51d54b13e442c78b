package dataset

import "runtime/debug"

// AppendKeys appends the keys of all samples to b, in order and each with a zero byte behind it, which no key contains.
func (s *Snapshot) AppendKeys(b []byte) (_ []byte, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return nil, ErrClosed
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	return s.manifest.AppendKeys(b)
}
