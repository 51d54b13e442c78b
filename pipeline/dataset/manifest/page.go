package manifest

import (
	"encoding/binary"
	"hash/crc32"
)

// A page has up to 128 samples:
//
//	head      CRC-32C of the rest of the page u32, bytes of the page u32, its number u64
//	restarts  where samples 16, 32, … begin, counted from the page's begin, u32 each, of those that there are
//	samples   one after another
//
// A sample is: uvarint bytes of its key that it shares with the sample before, uvarint bytes that follow, these
// bytes; if Labelled varint label less that of the sample before; uvarint size; of Members varint object less that of
// the sample before, and varint offset less the end of the sample before; else varint time less that of the sample
// before, or if Versioned uvarint bytes of its version, and these; then for each of its values, if the form
// holds none varint offset less that of the sample and uvarint size, else uvarint bytes, and these. Samples 0, 16, 32, … follow an empty key and
// zeros.
const (
	perPage  = 128
	perBlock = 16
	pageHead = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(before uint32, p []byte) uint32 { return crc32.Update(before, castagnoli, p) }

// restarts is how many a page of so many samples has.
func restarts(samples int) int { return (samples - 1) / perBlock }

// cursor is where in a page the reader or the writer is, with the sample before.
type cursor struct {
	rest     []byte
	key      []byte
	label    int64
	modified int64
	version  []byte // behind the key
	object   int64
	end      int64 // of the sample before, in its object
	offset   int64
	size     int64
	values   []byte // as the page has them
}

// pageBuilder makes a page.
type pageBuilder struct {
	count    int
	restarts [perPage/perBlock - 1]uint32
	samples  []byte
	out      []byte
	before   cursor
}

func (p *pageBuilder) add(form Form, s *Sample) {
	b := &p.before
	if p.count%perBlock == 0 {
		if p.count > 0 {
			p.restarts[p.count/perBlock-1] = uint32(len(p.samples))
		}
		*b = cursor{key: b.key[:0]}
	}
	shared := 0
	for shared < min(len(b.key), len(s.Key)) && b.key[shared] == s.Key[shared] {
		shared++
	}
	out := binary.AppendUvarint(p.samples, uint64(shared))
	out = binary.AppendUvarint(out, uint64(len(s.Key)-shared))
	out = append(out, s.Key[shared:]...)
	if form&Labelled != 0 {
		out = binary.AppendVarint(out, s.Label-b.label)
	}
	out = binary.AppendUvarint(out, uint64(s.Size))
	switch {
	case form&Members != 0:
		out = binary.AppendVarint(out, int64(s.Object)-b.object)
		out = binary.AppendVarint(out, s.Offset-b.end)
	case form&Versioned != 0:
		out = append(binary.AppendUvarint(out, uint64(len(s.Version))), s.Version...)
	default:
		out = binary.AppendVarint(out, s.ModifiedNanos-b.modified)
	}
	for _, v := range s.Values {
		if !form.HoldsValues() {
			out = binary.AppendVarint(out, v.Offset-s.Offset)
		}
		out = append(binary.AppendUvarint(out, uint64(v.Size)), v.Data...)
	}
	*b = cursor{
		key: append(b.key[:shared], s.Key[shared:]...), label: s.Label, modified: s.ModifiedNanos,
		object: int64(s.Object), end: s.Offset + s.Size,
	}
	p.samples = out
	p.count++
}

// seal returns the page, which is valid until the next call of add.
func (p *pageBuilder) seal(number uint64) []byte {
	head := pageHead + 4*restarts(p.count)
	p.out = binary.LittleEndian.AppendUint32(p.out[:0], 0)
	p.out = binary.LittleEndian.AppendUint32(p.out, uint32(head+len(p.samples)))
	p.out = binary.LittleEndian.AppendUint64(p.out, number)
	for _, at := range p.restarts[:restarts(p.count)] {
		p.out = binary.LittleEndian.AppendUint32(p.out, uint32(head)+at)
	}
	p.out = append(p.out, p.samples...)
	binary.LittleEndian.PutUint32(p.out, checksum(0, p.out[4:]))
	return p.out
}

func (p *pageBuilder) reset() { p.count, p.samples = 0, p.samples[:0] }

// openPage checks the page with this number that begins at an offset of the pages.
func openPage(pages []byte, begin, number uint64) ([]byte, bool) {
	if begin > uint64(len(pages)) || uint64(len(pages))-begin < pageHead {
		return nil, false
	}
	p := pages[begin:]
	n := binary.LittleEndian.Uint32(p[4:])
	if n < pageHead || uint64(n) > uint64(len(p)) {
		return nil, false
	}
	p = p[:n:n]
	return p, checksum(0, p[4:]) == binary.LittleEndian.Uint32(p) && binary.LittleEndian.Uint64(p[8:]) == number
}

// block is the cursor before the block that holds sample i of a page of so many samples.
func block(page []byte, i, samples int, key []byte) (cursor, bool) {
	begin := uint32(pageHead + 4*restarts(samples))
	if i >= perBlock {
		begin = binary.LittleEndian.Uint32(page[pageHead+4*(i/perBlock-1):])
	}
	if begin > uint32(len(page)) || pageHead+4*restarts(samples) > len(page) {
		return cursor{}, false
	}
	return cursor{rest: page[begin:], key: key[:0]}, true
}

// next reads a sample; false when the page is damaged. It takes and returns a value, so that the caller's key stays
// on its stack.
func (c cursor) next(form Form) (cursor, bool) {
	c, ok := c.nextFile(form)
	if !ok || form.Values() == 0 {
		return c, ok
	}
	before := c.rest
	for range form.Values() {
		if _, c.rest, ok = cutValue(form, c.rest); !ok {
			return c, false
		}
	}
	c.values = before[:len(before)-len(c.rest)]
	return c, true
}

// cutValue takes a value off the rest; its offset is that less the sample's.
func cutValue(form Form, rest []byte) (v SampleValue, _ []byte, ok bool) {
	if !form.HoldsValues() {
		if v.Offset, rest, ok = varint(rest, 0); !ok {
			return v, nil, false
		}
	}
	if len(rest) == 0 {
		return v, nil, false
	}
	size, rest := uvarint(rest)
	if v.Size = int64(size); v.Size < 0 || v.Size > MaxValueBytes {
		return v, nil, false
	}
	if !form.HoldsValues() {
		return v, rest, true
	}
	if size > uint64(len(rest)) {
		return v, nil, false
	}
	v.Data = rest[:size:size]
	return v, rest[size:], true
}

// nextFile reads what there is of a sample before its values.
func (c cursor) nextFile(form Form) (cursor, bool) {
	shared, rest := uvarint(c.rest)
	more, rest := uvarint(rest)
	if shared > uint64(len(c.key)) || more > uint64(len(rest)) || shared+more > MaxKeyBytes {
		return c, false
	}
	c.key = append(c.key[:shared], rest[:more]...)
	rest = rest[more:]
	ok := true
	if form&Labelled != 0 {
		c.label, rest, ok = varint(rest, c.label)
	}
	size, rest := uvarint(rest)
	c.size = int64(size)
	if form&(Members|Versioned) == Versioned {
		return c.take(rest, ok)
	}
	if form&Members == 0 {
		var timed bool
		c.modified, c.rest, timed = varint(rest, c.modified)
		return c, ok && timed
	}
	var placed, found bool
	c.object, rest, found = varint(rest, c.object)
	c.offset, c.rest, placed = varint(rest, c.end)
	c.end = c.offset + c.size
	return c, ok && found && placed
}

// take takes the sample's version off the rest.
func (c cursor) take(rest []byte, ok bool) (cursor, bool) {
	n, rest := uvarint(rest)
	if n > uint64(len(rest)) {
		return c, false
	}
	end := len(c.key)
	c.key = append(c.key, rest[:n]...)
	c.key, c.version = c.key[:end], c.key[end:]
	c.rest = rest[n:]
	return c, ok
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

// varint takes the difference to a number before off p.
func varint(p []byte, before int64) (int64, []byte, bool) {
	v, n := binary.Varint(p)
	if n <= 0 {
		return 0, nil, false
	}
	return before + v, p[n:], true
}
