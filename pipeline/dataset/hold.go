package dataset

// hold keeps a root's handle open until release, so that a file system that does not answer keeps nobody from closing the snapshot.
func (r *root) hold() { r.users.Add(1) }

// release ends a hold, or the one that openRoot begins with; the last one closes the handle.
func (r *root) release() error {
	if r.users.Add(-1) < 0 {
		return r.close()
	}
	return nil
}

// held is the root's handle, which the caller releases; nil of a closed snapshot.
func (s *Snapshot) held() *root {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.root != nil {
		s.root.hold()
	}
	return s.root
}

// tellAlive tells that the file system has answered.
func (r *root) tellAlive() {
	if r.alive != nil {
		r.alive()
	}
}
