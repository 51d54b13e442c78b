package node

import (
	"fmt"
	"sync"

	pb "github.com/feedwater-io/feedwater/proto/feedwater/v1"
)

// lease is the right to write one attempt's memory, held by a stream under the attempt's id.
type lease struct {
	id      uint64
	attempt *Attempt

	mu      sync.Mutex // held while a piece is copied
	revoked bool
	room    []byte
	header  *pb.Header
	next    uint64 // where the next piece belongs
	crc     uint32
}

// revoke returns when nobody writes the memory, and nobody will.
func (l *lease) revoke() {
	l.mu.Lock()
	l.revoked = true
	l.mu.Unlock()
}

// copyPiece copies a piece to its place. It returns the answer when the attempt has come to its end, and an error when
// the node breaks the protocol.
func (l *lease) copyPiece(m *pb.FetchResponse, p payload) (*Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked {
		return nil, nil
	}
	if err := l.checkPiece(m, p); err != nil {
		return nil, err
	}
	if m.Offset == 0 {
		if err := layout(l.attempt.Fields).checkHeader(m.Header, CountSamples(l.attempt.Name), m.Size); err != nil {
			return &Answer{Err: err}, nil
		}
		l.header = m.Header
		if !l.makeRoom(m.Size) {
			return &Answer{Err: &RoomError{Bytes: m.Size}}, nil
		}
	}
	l.crc = p.copyTo(l.room[m.Offset:m.Offset+uint64(p.bytes)], l.crc)
	l.next += uint64(p.bytes)
	switch {
	case l.next < m.Size:
		return nil, nil
	case l.crc != l.header.Crc32C:
		return &Answer{Err: newDamageError("its checksum differs")}, nil
	}
	return &Answer{Header: l.header, Data: l.room}, nil
}

func (l *lease) checkPiece(m *pb.FetchResponse, p payload) error {
	bytes := uint64(p.bytes)
	switch {
	case m.Offset != l.next:
		return fmt.Errorf("batch %d: a piece for offset %d where %d is next", m.Id, m.Offset, l.next)
	case m.Offset == 0 && m.Header == nil:
		return fmt.Errorf("batch %d: the first piece has no header", m.Id)
	case m.Offset > 0 && m.Size != uint64(len(l.room)):
		return fmt.Errorf("batch %d: %d bytes after %d were announced", m.Id, m.Size, len(l.room))
	case bytes == 0 || m.Size < m.Offset || bytes > m.Size-m.Offset:
		return fmt.Errorf("batch %d: a piece of %d bytes at %d of %d", m.Id, bytes, m.Offset, m.Size)
	}
	return nil
}

// makeRoom takes the attempt's memory, a larger one if it has to be.
func (l *lease) makeRoom(size uint64) bool {
	l.room = l.attempt.Dst
	if size > uint64(len(l.room)) {
		if l.attempt.Grow == nil || size > maxBatchBytes {
			return false
		}
		if l.room = l.attempt.Grow(int(size)); uint64(len(l.room)) < size {
			return false
		}
	}
	l.room = l.room[:size]
	return true
}
