package dataset

import (
	"bytes"
	"runtime/debug"
)

// Same reports whether later lists the files of this snapshot with the same names, sizes and times in the same directories, of which
// nothing was touched, and this one can still read them: then it need not be replaced. Of a snapshot that is closed, or whose manifest
// cannot be read, it is false.
func (s *Snapshot) Same(later *Snapshot) bool {
	if s == later {
		return true
	}
	then, err := s.rootNow()
	now, nowErr := later.rootNow()
	if err != nil || nowErr != nil || then.device != now.device || !then.isStill(now) {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	later.mu.RLock()
	defer later.mu.RUnlock()
	if s.manifest == nil || later.manifest == nil {
		return false
	}
	return s.maxBytes == later.maxBytes && sameLists(s.memory.data, later.memory.data)
}

// rootNow looks at the root as it is now.
func (s *Snapshot) rootNow() (attributes, error) {
	root := s.held()
	if root == nil {
		return attributes{}, ErrClosed
	}
	defer func() { _ = root.release() }()
	return root.stat("")
}

// sameLists compares two manifests, but for when they were made.
func sameLists(a, b []byte) bool {
	var err error
	same := func() bool {
		defer recoverFault(debug.SetPanicOnFault(true), &err)
		return len(a) == len(b) && bytes.Equal(a[:scannedAt], b[:scannedAt]) &&
			bytes.Equal(a[headerBytes:len(a)-checksumBytes], b[headerBytes:len(b)-checksumBytes])
	}()
	return same && err == nil
}
