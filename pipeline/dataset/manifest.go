package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
)

// A manifest is one file, read in place. Integers are little-endian; sections follow one another without gaps, so that their
// places follow from the counts:
//
//	header       magic [8], fingerprint [32], samples u64, classes u64, directories u64,
//	             bytes of blocks u64, bytes of names u64, start of the scan i64 (nanoseconds since 1970)
//	blocks       of 16 samples each; a sample is: uvarint bytes of its key that it shares with the sample before,
//	             uvarint bytes that follow, these bytes, uvarint size, varint modification time less that of the sample before.
//	             The first sample of a block follows an empty key and the time 0
//	index        per block: where it begins in blocks u64
//	directories  each: where its name ends in names u64, modification time i64, time of change i64, inode u64.
//	             The first is the root
//	classes      each, in label order: first sample u64, directory u64, SHA-256 [32]
//	names        the root's absolute path, then each directory's path below the root
//	checksum     CRC-32C u32 of all before
//
// The checksum finds what storage does to a file. What the sections say is checked besides: the counts and tables when the
// manifest is opened, a block when it is read. So no manifest, however damaged, is read beyond its end.
const (
	magic          = "fwsnap1\n"
	scannedAt      = 80 // in the header
	headerBytes    = 88
	perBlock       = 16
	directoryBytes = 32
	classBytes     = 48
	checksumBytes  = 4
)

// manifest reads the bytes of a manifest; it is valid as long as they are.
type manifest struct {
	header, blocks, index, directories, classes, names []byte
	samples                                            int
	scanned                                            int64
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// parse checks a whole manifest except the inside of its blocks.
func parse(data []byte) (*manifest, error) {
	if len(data) < headerBytes+checksumBytes || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it has no header", errDamaged)
	}
	body := data[:len(data)-checksumBytes]
	if checksum(body) != binary.LittleEndian.Uint32(data[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum differs", errDamaged)
	}
	m, err := cut(body)
	if err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// cut finds the sections.
func cut(body []byte) (*manifest, error) {
	m := &manifest{header: body[:headerBytes], scanned: int64(binary.LittleEndian.Uint64(body[scannedAt:]))}
	rest := body[headerBytes:]
	var counts [5]int // samples, classes, directories, bytes of blocks, bytes of names
	for i := range counts {
		n := binary.LittleEndian.Uint64(body[40+8*i:])
		if n > uint64(len(body)) { // each takes a byte at least
			return nil, fmt.Errorf("%w: count %d is %d", errDamaged, i, n)
		}
		counts[i] = int(n)
	}
	m.samples = counts[0]
	for _, section := range []struct {
		to    *[]byte
		bytes int64
	}{
		{&m.blocks, int64(counts[3])},
		{&m.index, 8 * (int64(m.samples+perBlock-1) / perBlock)},
		{&m.directories, directoryBytes * int64(counts[2])},
		{&m.classes, classBytes * int64(counts[1])},
		{&m.names, int64(counts[4])},
	} {
		if section.bytes > int64(len(rest)) {
			return nil, fmt.Errorf("%w: it is too short", errDamaged)
		}
		*section.to, rest = rest[:section.bytes:section.bytes], rest[section.bytes:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: it is too long", errDamaged)
	}
	return m, nil
}

// check looks at the tables of directories and classes.
func (m *manifest) check() error {
	end := uint64(0)
	for i := range m.dirs() {
		next := u64(m.directories, directoryBytes*i)
		if next < end || next > uint64(len(m.names)) {
			return fmt.Errorf("%w: directory %d", errDamaged, i)
		}
		end = next
	}
	if m.dirs() == 0 || m.labels() == 0 || u64(m.classes, 0) != 0 {
		return fmt.Errorf("%w: it is empty", errDamaged)
	}
	first := uint64(0)
	for i := range m.labels() {
		next, dir := u64(m.classes, classBytes*i), u64(m.classes, classBytes*i+8)
		if next < first || next > uint64(m.samples) || dir >= uint64(m.dirs()) {
			return fmt.Errorf("%w: class %d", errDamaged, i)
		}
		first = next
	}
	return nil
}

func u64(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

func (m *manifest) fingerprint() []byte { return m.header[8 : 8+sha256.Size] }
func (m *manifest) dirs() int           { return len(m.directories) / directoryBytes }
func (m *manifest) labels() int         { return len(m.classes) / classBytes }
func (m *manifest) root() string        { return string(m.name(0)) }

// name is the path of directory i below the root; for the root itself, its absolute path.
func (m *manifest) name(i int) []byte {
	start := uint64(0)
	if i > 0 {
		start = u64(m.directories, directoryBytes*(i-1))
	}
	return m.names[start:u64(m.directories, directoryBytes*i)]
}

// directory is what the scan saw of directory i, and its path below the root.
func (m *manifest) directory(i int) (string, attributes) {
	b := m.directories[directoryBytes*i:]
	path := ""
	if i > 0 {
		path = string(m.name(i))
	}
	return path, attributes{kind: kindFolder, modified: int64(u64(b, 8)), changed: int64(u64(b, 16)), inode: u64(b, 24)}
}

// first is the first sample of a class; of the class after the last, the number of samples.
func (m *manifest) first(label int) int {
	if label == m.labels() {
		return m.samples
	}
	return int(u64(m.classes, classBytes*label))
}

func (m *manifest) classList() []Class {
	classes := make([]Class, m.labels())
	for i := range classes {
		b := m.classes[classBytes*i:]
		classes[i] = Class{
			Name:    string(m.name(int(u64(b, 8)))),
			Samples: m.first(i+1) - m.first(i),
			Digest:  binary.BigEndian.Uint64(b[16:]),
		}
	}
	return classes
}

// at reads sample i and writes its key over the key it is given.
func (m *manifest) at(i int, key []byte) (Sample, error) {
	if i < 0 || i >= m.samples {
		return Sample{}, fmt.Errorf("sample %d of %d", i, m.samples)
	}
	block := u64(m.index, 8*(i/perBlock))
	if block > uint64(len(m.blocks)) {
		return Sample{}, fmt.Errorf("%w: sample %d", errDamaged, i)
	}
	c := cursor{rest: m.blocks[block:], key: key[:0]}
	for range i%perBlock + 1 {
		var ok bool
		if c, ok = c.next(); !ok {
			return Sample{}, fmt.Errorf("%w: sample %d", errDamaged, i)
		}
	}
	if c.size < 0 || !isLocal(c.key) {
		return Sample{}, fmt.Errorf("%w: sample %d", errDamaged, i)
	}
	label := sort.Search(m.labels(), func(l int) bool { return m.first(l+1) > i })
	return Sample{Key: c.key, Label: label, Size: c.size, ModifiedNanos: c.modified}, nil
}

// cursor reads the samples of a block one after another.
type cursor struct {
	rest, key      []byte
	size, modified int64
}

// next reads a sample; false when the block is damaged. It takes and returns a value, so that the caller's key stays on its stack.
func (c cursor) next() (cursor, bool) {
	shared, rest := uvarint(c.rest)
	more, rest := uvarint(rest)
	if shared > uint64(len(c.key)) || more > uint64(len(rest)) || shared+more > maxKeyBytes {
		return c, false
	}
	c.key = append(c.key[:shared], rest[:more]...)
	size, rest := uvarint(rest[more:])
	c.size = int64(size)
	delta, n := binary.Varint(rest)
	if n <= 0 {
		return c, false
	}
	c.rest = rest[n:]
	c.modified += delta
	return c, true
}

// uvarint takes a number off p. From a damaged one it leaves nothing, and so the next read fails.
func uvarint(p []byte) (uint64, []byte) {
	if len(p) > 0 && p[0] < 0x80 {
		return uint64(p[0]), p[1:]
	}
	v, n := binary.Uvarint(p)
	if n <= 0 {
		n = len(p)
	}
	return v, p[n:]
}
