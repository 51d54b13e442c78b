package imageindex

import "encoding/binary"

// trimPending is what of a pending segment a Cache by content writes: records that no file of others has meanwhile, as far
// as there is room. The others are forgotten. Without any to forget it is p.
func (s *Cache) trimPending(p *pending) *pending {
	if !s.byContent {
		return p
	}
	room := s.findRoom() - headBytes - checksumBytes
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isNeeded(p) && int64(len(p.entries)+len(p.records)) <= room {
		return p
	}
	fits := &pending{segment: len(s.segments), begun: p.begun}
	for key, offset := range entriesOf(p.entries) {
		at, record := placeIn(p.segment, offset), recordAt(p.records, offset)
		need := int64(entryBytes + len(record))
		switch {
		case s.digests.of(key) != at:
			s.forgetLost(1, len(record))
		case need > room:
			s.digests.leaveRecord(key, at)
			s.full, s.lacking = true, need
		default:
			room -= need
			s.digests.set(key, placeIn(fits.segment, uint32(len(fits.records))))
			fits.entries = binary.LittleEndian.AppendUint64(fits.entries, key)
			fits.entries = binary.LittleEndian.AppendUint32(fits.entries, uint32(len(fits.records)))
			fits.records = append(fits.records, record...)
		}
	}
	s.segments = append(s.segments, segment{records: fits.records})
	s.segments[p.segment] = segment{}
	if len(fits.entries) == 0 {
		s.reportHeld(-int64(s.options.pendingBytes))
	}
	return fits
}

// isNeeded reports whether all records of a pending segment are those that are found. mu is held.
func (s *Cache) isNeeded(p *pending) bool {
	for key, offset := range entriesOf(p.entries) {
		if s.digests.of(key) != placeIn(p.segment, offset) {
			return false
		}
	}
	return true
}

// forgetLost notes that so many records, of so many bytes with all that is around their data, are in a file. mu is held.
func (s *Cache) forgetLost(records, bytes int) {
	s.lost.records -= records
	s.lost.bytes -= int64(bytes - records*(lengthBytes+trailerBytes))
}

// recordAt is a whole record that was gathered.
func recordAt(records []byte, offset uint32) []byte {
	n := lengthBytes + int(binary.LittleEndian.Uint32(records[offset:])) + trailerBytes
	return records[offset:][:n]
}
