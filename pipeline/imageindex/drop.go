package imageindex

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DiskBytes is what the files of the Cache took when the folder was last looked at, which Open and Close do.
func (s *Cache) DiskBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.disk
}

// dropSegments removes files that nobody needs: for each of their records there is one in a file with a later name,
// which is what a Cache that is opened now would use. The file with the latest name stays, so whichever Caches drop at
// once, each key that had a record keeps one. Those who have such a file open go on with it. present are the
// Cache's files that were there a moment ago.
func (s *Cache) dropSegments(present map[string]fs.DirEntry) {
	s.mu.RLock()
	all := slices.DeleteFunc(slices.Clone(s.segments), func(g segment) bool { return present[g.name] == nil })
	covered := s.table.like() // keys that have a record in a later file
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(b.name, a.name) })
	for _, g := range all {
		if !g.coverKeys(covered) && os.Remove(filepath.Join(s.options.Dir, g.name)) == nil {
			s.forgetFile(g.name)
			delete(present, g.name)
		}
	}
}

// countDisk counts the bytes of the files that are there.
func (s *Cache) countDisk(present map[string]fs.DirEntry) {
	bytes := int64(0)
	for _, e := range present {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = bytes
}

// coverKeys marks the keys that a file has records of, and reports whether it is needed: it has one that was not marked,
// or cannot be read now.
func (g *segment) coverKeys(covered table) (needed bool) {
	data := g.memory.data
	entries := data[headBytes : len(data)-len(g.records)-checksumBytes]
	err := guardFaults(func() {
		for key := range entriesOf(entries) {
			if covered.of(key) == 0 {
				covered.set(key, nothing)
				needed = true
			}
		}
	})
	return needed || err != nil
}

// forgetFile gives the memory of a removed file back, and with it the disk, unless a record of it is in use: the later
// one could not be had.
func (s *Cache) forgetFile(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := slices.IndexFunc(s.segments, func(g segment) bool { return g.name == name })
	if !s.table.inSegment(k) {
		s.segments[k].freeMemory()
	}
}

// leaveFile gives the memory of a file up that was removed for others, and with it the disk: its records are found no more.
func (s *Cache) leaveFile(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := slices.IndexFunc(s.segments, func(g segment) bool { return g.name == name })
	if s.digests != nil && k >= 0 {
		s.digests.leave(k)
		s.segments[k].freeMemory()
	}
}
