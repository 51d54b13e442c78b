package dataset

import (
	"fmt"
	"runtime/debug"

	"github.com/feedwater-io/feedwater/pipeline/dataset/layout"
)

// maxKeys is of how many samples the keys are held in memory: they take some 100 B each.
const maxKeys = 10_000_000

// CheckKeys returns an error that wraps ErrLayout where the keys of so many samples are too many to be held in memory.
func CheckKeys(samples int) error {
	if samples <= maxKeys {
		return nil
	}
	return fmt.Errorf("%w whose names fit in memory: %d samples, and masks and the comparison with an ImageFolder take %d at most; "+
		"a path in place of an ImageFolder is not compared", layout.ErrLayout, samples, maxKeys)
}

// AppendKeys appends the keys of all samples to b, in order and each with a zero byte behind it, which no key contains. Errors are ErrClosed and
// that of CheckKeys.
func (s *Snapshot) AppendKeys(b []byte) (_ []byte, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.manifest == nil {
		return nil, ErrClosed
	}
	if err := CheckKeys(s.samples); err != nil {
		return nil, err
	}
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	return s.manifest.AppendKeys(b)
}
