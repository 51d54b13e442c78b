package dataset

import (
	"context"
	"runtime/debug"

	"github.com/feedwater-io/feedwater/pipeline/dataset/manifest"
	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// Same reports whether later lists the files of this snapshot with the same names, sizes and times in the same
// directories, of which nothing was touched, and this one can still read them: then it need not be replaced. Of a
// snapshot that is closed, or whose manifest cannot be read, it is false.
func (s *Snapshot) Same(later *Snapshot) bool {
	if s == later {
		return true
	}
	then, err := s.rootNow()
	now, nowErr := later.rootNow()
	if err != nil || nowErr != nil || then.Device != now.Device || !then.IsStill(now) {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	later.mu.RLock()
	defer later.mu.RUnlock()
	if s.manifest == nil || later.manifest == nil {
		return false
	}
	return s.maxBytes == later.maxBytes && sameLists(s.manifest, later.manifest)
}

// rootNow looks at the root as it is now.
func (s *Snapshot) rootNow() (store.Attributes, error) {
	from := s.held()
	if from == nil {
		return store.Attributes{}, ErrClosed
	}
	defer func() { _ = from.release() }()
	return from.Stat(context.Background(), "")
}

// sameLists compares two manifests, but for when they were made.
func sameLists(a, b *manifest.Manifest) bool {
	var err error
	same := func() bool {
		defer recoverFault(debug.SetPanicOnFault(true), &err)
		return a.Same(b)
	}()
	return same && err == nil
}
