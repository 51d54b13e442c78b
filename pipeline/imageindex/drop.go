package imageindex

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DiskBytes is what the files of the data set took when the folder was last looked at, which Open and Close do.
func (s *Cache) DiskBytes() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.disk
}

// dropSegments removes files that nobody needs: for each of their records there is one in a file with a later name,
// which is what a Cache that is opened now would use. The file with the latest name stays, so whichever Caches drop at
// once, each sample that had a record keeps one. Those who have such a file open go on with it. present are the data
// set's files that were there a moment ago, whose bytes are counted.
func (s *Cache) dropSegments(present map[string]fs.DirEntry) {
	s.mu.RLock()
	all := slices.DeleteFunc(slices.Clone(s.segments), func(g segment) bool { return present[g.name] == nil })
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b segment) int { return strings.Compare(b.name, a.name) })
	covered := newPlaces(s.places.samples) // those that have a record in a later file
	for _, g := range all {
		if !g.coverSamples(&covered) && os.Remove(filepath.Join(s.options.Dir, g.name)) == nil {
			s.forgetFile(g.name)
			delete(present, g.name)
		}
	}
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

// coverSamples marks the samples that a file has records of, and reports whether it is needed: it has one that was not
// marked, or cannot be read now.
func (g *segment) coverSamples(covered *places) (needed bool) {
	data := g.memory.data
	entries := data[headBytes : len(data)-len(g.records)-checksumBytes]
	err := guardFaults(func() {
		for i := 0; i < len(entries); i += entryBytes {
			if sample := int(binary.LittleEndian.Uint32(entries[i:])); covered.of(sample) == 0 {
				covered.set(sample, nothing)
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
	if !s.places.inSegment(k) {
		s.segments[k].freeMemory()
	}
}
