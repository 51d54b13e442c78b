package imageindex

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zeebo/xxh3"
)

// A segment is a file of records that is never changed. Integers are little-endian:
//
//	head      magic [8], key of the Cache [32], entries u32, bytes of records u32
//	entries   each: key u64, offset of its record in the records u32
//	checksum  XXH3 u64 of all before
//	records
//
// A Cache checks all but the records when it opens a segment, and a record when it is asked for.
const (
	format        = "3"
	magic         = "fwindex" + format
	headBytes     = 48
	entryBytes    = 12
	checksumBytes = 8
)

// segment is what a Cache has of one: mapped, or still in memory, without a name.
type segment struct {
	name    string  // of its file
	memory  *memory // nil: records are not in a file
	records []byte
}

func (s *segment) freeMemory() {
	s.memory.release()
	s.memory, s.name, s.records = nil, "", nil
}

// pending is a segment that is being gathered.
type pending struct {
	segment          int // among the Cache's
	begun            time.Time
	entries, records []byte
}

// headOf is what comes before the records.
func (p *pending) headOf(key [sha256.Size]byte) []byte {
	b := append([]byte(magic), key[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.entries)/entryBytes))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.records)))
	b = append(b, p.entries...)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

var errDamaged = errors.New("the index file is damaged, or of other data")

// parseSegment finds entries and records of a segment of a Cache with this key, which takes such keys of records. The
// entries are a copy: nobody can change them any more.
func parseSegment(data []byte, key [sha256.Size]byte, takes func(uint64) bool) (entries, records []byte, err error) {
	if len(data) < headBytes || string(data[:len(magic)]) != magic || string(data[len(magic):len(magic)+len(key)]) != string(key[:]) {
		return nil, nil, errDamaged
	}
	count, size := binary.LittleEndian.Uint32(data[headBytes-8:]), binary.LittleEndian.Uint32(data[headBytes-4:])
	end := headBytes + entryBytes*int64(count)
	if int64(len(data)) != end+checksumBytes+int64(size) {
		return nil, nil, errDamaged
	}
	checked := bytes.Clone(data[:end+checksumBytes])
	if binary.LittleEndian.Uint64(checked[end:]) != xxh3.Hash(checked[:end]) {
		return nil, nil, errDamaged
	}
	entries, records = checked[headBytes:end], data[end+checksumBytes:]
	for key, offset := range entriesOf(entries) {
		if !takes(key) || offset >= size {
			return nil, nil, errDamaged
		}
	}
	return entries, records, nil
}

// entriesOf are keys and offsets.
func entriesOf(entries []byte) iter.Seq2[uint64, uint32] {
	return func(yield func(uint64, uint32) bool) {
		for e := range slices.Chunk(entries, entryBytes) {
			if !yield(binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint32(e[8:])) {
				return
			}
		}
	}
}

// loadFile makes the records of a file findable.
func (s *Cache) loadFile(path string) error {
	m, err := mapPath(path)
	if err != nil {
		return err
	}
	var entries, records []byte
	fault := guardFaults(func() { entries, records, err = parseSegment(m.data, s.key, s.table.takes) })
	if err = errors.Join(fault, err); err != nil {
		m.release()
		return err
	}
	s.adoptSegment(segment{filepath.Base(path), m, records}, entries)
	return nil
}

// adoptSegment takes a parsed segment. What it says of a key replaces what files with earlier names say.
func (s *Cache) adoptSegment(g segment, entries []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = append(s.segments, g)
	for key, offset := range entriesOf(entries) {
		if at := s.table.of(key); at <= nothing || s.segments[at.segment()].yieldsTo(g.name, s.byContent) {
			s.setPlace(key, placeIn(len(s.segments)-1, offset))
		}
	}
}

// yieldsTo reports whether a file says it later than a segment; of one file the later entry counts, and what is not
// written yet is the latest. By content that need not be written any more.
func (s *segment) yieldsTo(name string, byContent bool) bool {
	return s.name <= name && (s.name != "" || byContent)
}

// memory is the bytes of a file. Nil holds nothing, and does nothing.
type memory struct {
	data   []byte
	mapped bool
	holds  atomic.Int64 // besides the first one

	used    atomic.Bool // since its file was said to be in use
	touched time.Time   // when that was; of the goroutine that tends
}

// use notes that something was read of it.
func (m *memory) use() {
	if m != nil && !m.used.Load() { // which costs others' caches nothing
		m.used.Store(true)
	}
}

// hold keeps the memory until release.
func (m *memory) hold() {
	if m != nil {
		m.holds.Add(1)
	}
}

// release ends a hold; the last one gives the memory back.
func (m *memory) release() {
	if m == nil || m.holds.Add(-1) >= 0 {
		return
	}
	if m.mapped {
		unmap(m.data)
	}
	m.data = nil
}

// mapPath maps a whole file.
func mapPath(path string) (*memory, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO of that name must not hold anybody up
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headBytes+checksumBytes || info.Size() > 1<<33 {
		return nil, errDamaged
	}
	return mapFile(f, int(info.Size()))
}

// guardFaults calls f, which reads mapped memory: a file that is cut short, or whose disk fails, meanwhile is an error
// and not the end of the process. The error is not errDamaged: the fault may pass.
func guardFaults(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface{ Addr() uintptr })
		if !ok {
			panic(r)
		}
		err = fmt.Errorf("the index file cannot be read at address %#x", fault.Addr())
	}()
	f()
	return nil
}
