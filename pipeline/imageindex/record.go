package imageindex

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/zeebo/xxh3"
)

// A record is: u32 bytes of data, the data, u64 digest of the file it is about, u64 XXH3 of all that from the data on.
// Integers are little-endian.
const (
	lengthBytes  = 4
	trailerBytes = 16
)

// Digest is what a record knows its file by: XXH3 of the bytes.
func Digest(file []byte) uint64 { return xxh3.Hash(file) }

func appendRecord(dst []byte, digest uint64, data []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	start := len(dst)
	dst = append(dst, data...)
	dst = binary.LittleEndian.AppendUint64(dst, digest)
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[start:]))
}

// copyRecord copies the record at an offset over buf, without its length.
func copyRecord(records []byte, offset int, buf []byte) ([]byte, bool) {
	if offset+lengthBytes > len(records) {
		return buf[:0], false
	}
	n := int64(binary.LittleEndian.Uint32(records[offset:])) + trailerBytes
	rest := records[offset+lengthBytes:]
	if n > int64(len(rest)) {
		return buf[:0], false
	}
	return append(buf[:0], rest[:n]...), true
}

// dataOf is the data of a copied record if that is whole, and about a file of this digest.
func dataOf(record []byte, digest uint64) ([]byte, bool) {
	n := len(record) - trailerBytes
	tail := record[n:]
	if binary.LittleEndian.Uint64(tail[8:]) != xxh3.Hash(record[:n+8]) || binary.LittleEndian.Uint64(tail) != digest {
		return record[:0], false
	}
	return record[:n], true
}

// keyOf is what the record about a file is found by.
func (s *Cache) keyOf(sample int, digest uint64) uint64 {
	if s.byContent {
		return digest
	}
	return uint64(sample)
}

// Find copies the record of a sample whose file has this digest over buf, if there is one, and returns it in buf, grown
// where it must. Else it is empty, and make says whether Put is worth while. A Cache by content does not ask for the
// sample.
func (s *Cache) Find(sample int, digest uint64, buf []byte) (data []byte, make bool) {
	data, at, found := s.fetchRecord(s.keyOf(sample, digest), digest, buf)
	if found {
		s.tendIfDue(at)
		return data, false
	}
	s.tendIfDue(0)
	return data, at != nothing && s.IsOpen()
}

// IsOpen reports whether records are taken: neither is the Cache closed or full, nor has writing failed.
func (s *Cache) IsOpen() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.closed && !s.stopped && !s.full
}

// fetchRecord copies the data of a record about a file of this digest. The disk that it is read from keeps nobody else
// waiting.
func (s *Cache) fetchRecord(key, digest uint64, buf []byte) (data []byte, at place, found bool) {
	at, records, m := s.keepMemory(key)
	if at <= nothing {
		return buf[:0], at, false
	}
	defer m.release()
	data = buf[:0]
	err := guardFaults(func() { data, found = copyRecord(records, at.offset(), buf) })
	if !found || err != nil {
		return data[:0], at, false
	}
	if data, found = dataOf(data, digest); found {
		m.use()
	}
	return data, at, found
}

// keepMemory finds the records among which that of a key lies, and keeps their memory until m is released.
func (s *Cache) keepMemory(key uint64) (at place, records []byte, m *memory) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if at = s.table.of(key); at <= nothing {
		return at, nil, nil
	}
	g := &s.segments[at.segment()]
	g.memory.hold()
	return at, g.records, g.memory
}

// Put keeps a record about the file of a sample, which has this digest, in place of any other with that key. Empty data
// says that there is none, which a Cache by samples knows for as long as it lives. Where the disk does not keep up it
// keeps nothing. It reports whether the Cache knows what it was told.
func (s *Cache) Put(sample int, digest uint64, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (len(data) == 0 || !s.isBehind()) && s.putRecord(s.keyOf(sample, digest), digest, data)
}

// PutAll is Put that waits where the disk does not keep up, until ctx ends.
func (s *Cache) PutAll(ctx context.Context, sample int, digest uint64, data []byte) bool {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(data) > 0 && s.isBehind() {
		if ctx.Err() != nil {
			return false
		}
		s.taken.Wait()
	}
	return s.putRecord(s.keyOf(sample, digest), digest, data)
}

// putRecord is Put without a look at the disk. mu is held.
func (s *Cache) putRecord(key, digest uint64, data []byte) bool {
	switch {
	case s.closed || s.stopped || !s.table.takes(key):
		return false
	case len(data) == 0:
		if !s.byContent { // whose keys are any number of files
			s.setPlace(key, nothing)
		}
		return true
	case s.full || !s.takeRoom(len(data)):
		return false
	case s.pending == nil:
		s.segments = append(s.segments, segment{})
		s.pending = &pending{segment: len(s.segments) - 1, begun: time.Now()}
		s.reportHeld(int64(s.options.pendingBytes))
	}
	s.lost.records++
	s.lost.bytes += int64(len(data))
	p := s.pending
	offset := uint32(len(p.records))
	p.records = appendRecord(p.records, digest, data)
	p.entries = binary.LittleEndian.AppendUint64(p.entries, key)
	p.entries = binary.LittleEndian.AppendUint32(p.entries, offset)
	s.segments[p.segment].records = p.records
	s.setPlace(key, placeIn(p.segment, offset))
	if s.isGathered() || time.Since(p.begun) > flushAge {
		s.tendFiles()
	}
	return true
}

// takeRoom reports whether there is room for a record of so many bytes of data, and takes it. Where there is not, no more
// is taken: what was gathered is written now. mu is held.
func (s *Cache) takeRoom(n int) bool {
	if !s.byContent {
		return true
	}
	need := int64(lengthBytes + n + trailerBytes + entryBytes)
	if s.pending == nil {
		need += headBytes + checksumBytes
	}
	if need > s.room {
		s.full, s.lacking = true, need
		s.tendFiles()
		return false
	}
	s.room -= need
	return true
}

// setPlace notes where the record with a key is. mu is held.
func (s *Cache) setPlace(key uint64, at place) {
	if grown := s.table.set(key, at); grown != 0 {
		s.reportHeld(grown)
	}
}

// isGathered reports whether enough for a file was gathered. From then on a goroutine is at it.
func (s *Cache) isGathered() bool {
	return s.pending != nil && len(s.pending.records) >= s.options.pendingBytes
}

// isBehind reports whether the disk does not keep up.
func (s *Cache) isBehind() bool {
	return !s.closed && s.pending != nil && len(s.pending.records) >= 2*s.options.pendingBytes
}
