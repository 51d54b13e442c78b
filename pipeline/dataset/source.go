package dataset

import (
	"sync/atomic"

	"github.com/feedwater-io/feedwater/pipeline/dataset/store"
)

// source is a snapshot's store, open until all who use it have released it: storage that does not answer keeps nobody
// from closing the snapshot.
type source struct {
	store.Store
	users atomic.Int64
}

// hold keeps the store open until release.
func (r *source) hold() { r.users.Add(1) }

// release ends a hold, or the one that a source begins with; the last one closes the store.
func (r *source) release() error {
	if r.users.Add(-1) < 0 {
		return r.Close()
	}
	return nil
}

// held is the snapshot's store, which the caller releases; nil of a closed snapshot.
func (s *Snapshot) held() *source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.source != nil {
		s.source.hold()
	}
	return s.source
}
