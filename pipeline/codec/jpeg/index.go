package jpeg

import (
	"bytes"
	"encoding/binary"
	"math"
)

// An index says where in the data of a scan MCUs begin, so that a region is decoded without what lies before it. It is made of the file,
// adds nothing to it, and belongs to these bytes alone: whoever keeps it makes sure of that. As bytes it is
//
//	uvarint interval: a mark stands at the start of each row of MCUs, and every so many blocks from there, as mcuInterval counts
//	each mark, row by row: uvarint bits since the mark before, varint for each component of the scan: its predictor less the one before
//	uvarint bits from the last mark to the end of the data
type index struct {
	interval int // in MCUs
	perRow   int
	marks    []mark // perRow for each row of MCUs, and the end of the data
}

// mark is a place where an MCU begins. bit counts from the first byte of the scan's data, stuffed zeros included; last is the last first
// coefficient of each component.
type mark struct {
	bit  int
	last [maxComponents]int32
}

// MaxIndexInterval is the largest number of blocks from one mark of an index to the next.
const MaxIndexInterval = 1 << 16

// IndexInterval is how many blocks lie between two marks of an index that AppendIndex made; 0 if it makes no sense.
func IndexInterval(index []byte) int {
	if IsCopy(index) {
		_, index, _ = openCopy(index, Limits{Scans: math.MaxInt, ScanBlocks: math.MaxInt64})
	}
	n, k := binary.Uvarint(index)
	if k <= 0 || n > MaxIndexInterval {
		return 0
	}
	return int(n)
}

// indexable reports whether files like this have an index: of one scan, without restart markers, which are places to begin themselves.
func (p *parser) indexable() bool {
	return p.frame.single(&p.scans[0]) && p.scans[0].restart == 0
}

// mcuInterval turns an interval in blocks, of 8 columns of the picture, to one in MCUs.
func mcuInterval(interval int, f *frame) int { return max(1, interval/f.hMax) }

// lay sets the places of the marks of a scan and returns how many there are, the end not counted.
func (x *index) lay(interval int, f *frame, s *scan) int {
	w, h := s.mcus(f)
	x.interval, x.marks = mcuInterval(interval, f), x.marks[:0]
	x.perRow = ceilDiv(w, x.interval)
	return x.perRow * h
}

// read takes an index from bytes and reports whether it makes sense for a scan of size bytes. Its memory is bounded by theirs.
func (x *index) read(b []byte, f *frame, s *scan, size int) bool {
	x.marks = x.marks[:0]
	interval := IndexInterval(b)
	if interval == 0 {
		return false
	}
	n := x.lay(interval, f, s)
	if int64(n)*int64(1+s.n) > int64(len(b)) { // each number takes a byte at least
		return false
	}
	_, b = uvarint(b)
	var m mark
	for range n {
		var bits uint64
		if bits, b = uvarint(b); bits > uint64(8*size-m.bit) {
			return false
		}
		m.bit += int(bits)
		for i := range s.n {
			var d uint64
			d, b = uvarint(b)
			m.last[i] += int32(d>>1) ^ -int32(d&1)
		}
		x.marks = append(x.marks, m)
	}
	bits, b := uvarint(b)
	if bits > uint64(8*size-m.bit) || len(b) != 0 {
		return false
	}
	m.bit += int(bits)
	x.marks = append(x.marks, m)
	return true
}

// uvarint takes a number off b; where there is none, a huge one, and leaves one byte, which is too many at the end.
func uvarint(b []byte) (uint64, []byte) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:]
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return math.MaxUint64, []byte{0}
	}
	return v, b[n:]
}

// write appends the index to dst, as read takes it.
func (x *index) write(dst []byte, interval, components int) []byte {
	dst = binary.AppendUvarint(dst, uint64(interval))
	var before mark
	end := len(x.marks) - 1
	for _, m := range x.marks[:end] {
		dst = binary.AppendUvarint(dst, uint64(m.bit-before.bit))
		for i := range components {
			dst = binary.AppendVarint(dst, int64(m.last[i]-before.last[i]))
		}
		before = m
	}
	return binary.AppendUvarint(dst, uint64(x.marks[end].bit-before.bit))
}

// stuff turns places in data without stuffed zeros into places in src, which has them and no marker.
func (x *index) stuff(src []byte) {
	zeros := 0                       // in src so far
	ff := bytes.IndexByte(src, 0xff) // the next byte that zeros may follow
	for i := range x.marks {
		m := &x.marks[i]
		for ff >= 0 && m.bit>>3 > ff-zeros {
			behind := ff + 1
			for behind < len(src) && src[behind] == 0xff {
				behind++
			}
			behind = min(behind+1, len(src))
			zeros += behind - ff - 1
			if ff = bytes.IndexByte(src[behind:], 0xff); ff >= 0 {
				ff += behind
			}
		}
		m.bit += 8 * zeros
	}
}

// ParseIndexed is Parse for a file whose index is at hand: AppendIndex must have made it of the very same bytes. What such a file holds
// behind the scan's header is known to be accepted and not looked at again. An index that makes no sense is no harm: then this is Parse.
func (d *Decoder) ParseIndexed(src []byte, l Limits, index []byte) (w, h int, err error) {
	d.parsed, d.interval, d.copyInterval = false, 0, 0
	d.several.trim()
	file, marks, ok := openCopy(index, l.withDefaults())
	if !ok {
		file = src
	}
	if d.parser.parseHeader(file, l.withDefaults(), &d.coder.segment) != nil || !d.parser.indexable() ||
		!d.index.read(marks, &d.parser.frame, &d.parser.scans[0], len(file)-d.parser.scans[0].data) {
		return d.Parse(src, l)
	}
	d.accept()
	return d.parser.frame.w, d.parser.frame.h, nil
}

// RecordCopies says whether AppendIndex makes the copies that progressive files have for an index.
func (d *Decoder) RecordCopies(wanted bool) { d.copies = wanted }

// Record makes Decode note an index on its way, with a mark every so many blocks of 8 columns, at most MaxIndexInterval; 0: not. It is called
// after Parse, and does nothing where there is an index or will be none.
func (d *Decoder) Record(interval int) {
	d.interval, d.copyInterval = 0, 0
	if d.copies && d.LacksCopy() {
		d.copyInterval = min(interval, MaxIndexInterval)
		return
	}
	if d.parsed && d.parser.indexable() && len(d.index.marks) == 0 {
		d.interval = min(interval, MaxIndexInterval)
	}
}

// AppendIndex appends the index that Record asked for, and reads what Decode did not need for it. It appends nothing where Record
// did not ask, or if the file is damaged: if its data ends too early or too late, or holds codes that the tables do not have. The index of a
// progressive file is a copy, see copyMark.
func (d *Decoder) AppendIndex(dst []byte) []byte {
	if n := d.copyInterval; n > 0 {
		d.copyInterval = 0
		return d.appendCopy(dst, n)
	}
	if d.interval == 0 {
		return dst
	}
	c, s := &d.coder, &d.parser.scans[0]
	if c.scan != s || c.due < 0 { // nothing was decoded since
		c.open(d.parser.src, &d.parser.frame, s)
		c.record(mcuInterval(d.interval, &d.parser.frame))
	}
	w, h := s.mcus(&d.parser.frame)
	c.skip(w*h - c.next)
	if !c.complete() {
		return dst
	}
	x := &d.index
	x.lay(d.interval, &d.parser.frame, s)
	x.marks = append(x.marks, c.marks...)
	x.stuff(c.cursor.src[s.data:c.segment.end])
	dst = x.write(dst, d.interval, s.n)
	x.marks, d.interval = x.marks[:0], 0
	return dst
}
